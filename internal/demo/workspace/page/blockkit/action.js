// What happens when somebody uses a control. A surface is where blocks live:
//   {people, key, form, act(block, element, value), suggest(block, element, text), report(block, error), problem(block)}
// people is the Directory, form keeps what is chosen (null in messages), act and suggest ask the app and throw ApiError.

import { askConfirm } from './confirm.js';
import { withEmoji } from '../emoji.js';

export function plainOf(object) {
  return object ? withEmoji(object.text ?? '') : '';
}

// markers are the attributes by which tests and style sheets find an element.
export function markers(block, element) {
  return { 'data-testid': element.type, 'data-action-id': element.action_id, 'data-block-id': block.block_id };
}

// act asks for the confirmation, sends the action, and shows on the control that it is under way.
// It answers whether the app has acknowledged it.
export async function act(surface, block, element, value, control) {
  if (!(await askConfirm(element.confirm, surface.people))) return false;
  control?.setAttribute('aria-busy', 'true');
  surface.report(block, null);
  try {
    await surface.act(block, element, value);
    return true;
  } catch (error) {
    surface.report(block, error);
    return false;
  } finally {
    control?.removeAttribute('aria-busy');
  }
}

// changed keeps a new value; outside of an input block, or with dispatch_action, the app is told at once.
export function changed(surface, block, element, value, control) {
  surface.form?.set(block, element, value);
  if (block.type !== 'input' || block.dispatch_action) return act(surface, block, element, value, control);
  return Promise.resolve(true);
}
