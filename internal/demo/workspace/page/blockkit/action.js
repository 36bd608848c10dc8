// The effect of using a control. A surface contains blocks, and has these fields:
//   {people, key, form, act(block, element, value), suggest(block, element, text), report(block, error),
//    problem(block)}
// people is the Directory. form has the entered values, and is null in messages. act and suggest call the app, and
// throw ApiError.

import { askConfirm } from './confirm.js';
import { withEmoji } from '../emoji.js';

export function plainOf(object) {
  return object ? withEmoji(object.text ?? '') : '';
}

// markers returns the attributes by which tests and style sheets find an element.
export function markers(block, element) {
  return { 'data-testid': element.type, 'data-action-id': element.action_id, 'data-block-id': block.block_id };
}

// act asks the person for confirmation, and then sends the action. Meanwhile the control is marked as busy. act returns
// whether the app has acknowledged the action.
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

// changed stores a new value. If the element is outside of an input block, or the block has dispatch_action, changed
// also sends the value to the app immediately.
export function changed(surface, block, element, value, control) {
  surface.form?.set(block, element, value);
  if (block.type !== 'input' || block.dispatch_action) return act(surface, block, element, value, control);
  return Promise.resolve(true);
}
