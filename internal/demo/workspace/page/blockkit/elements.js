// Block Kit's interactive elements.

import { act, markers, plainOf } from './action.js';
import { h } from '../widgets/dom.js';
import { icon } from '../widgets/icons.js';
import { safeUrl } from './inline.js';
import { drawInput } from './inputs.js';
import { createMenu } from '../widgets/menu.js';
import { renderText } from './richtext.js';
import { fromPermalink, routeTo } from '../route.js';
import { drawSelect } from './selects.js';

// drawElement draws one element of a block on a surface (see action.js). labelling connects an input with its label,
// hint and error.
export function drawElement(element, block, surface, labelling = {}) {
  if (!element) return null;
  switch (element.type) {
    case 'button': return drawButton(element, block, surface);
    case 'workflow_button': return h('button', { type: 'button', class: buttonClass(element), disabled: true, title: 'Workflows don’t run in the local workspace', ...markers(block, element) }, renderText(element.text, surface.people));
    case 'overflow': return drawOverflow(element, block, surface);
    case 'feedback_buttons': return drawFeedback(element, block, surface);
    case 'icon_button': return drawIconButton(element, block, surface);
    case 'image': return null;
    default: return drawSelect(element, block, surface, labelling) ?? drawInput(element, block, surface, labelling)
      ?? h('span', { class: 'fallback', ...markers(block, element) }, `This page can’t draw the element “${element.type}” yet.`);
  }
}

function buttonClass(element) {
  return `button${{ primary: ' button-primary', danger: ' button-danger' }[element.style] ?? ''}`;
}

function drawButton(element, block, surface) {
  const message = element.url ? fromPermalink(element.url, location.origin) : null;
  const href = message ? routeTo({ user: surface.people.me?.id ?? '', ...message }) : safeUrl(element.url);
  const away = message ? {} : { target: '_blank', rel: 'noopener noreferrer' };
  const props = {
    class: buttonClass(element), 'data-value': element.value, 'aria-label': element.accessibility_label, ...markers(block, element),
    onclick: (event) => {
      if (control.getAttribute('aria-busy')) {
        event.preventDefault();
        return;
      }
      act(surface, block, element, undefined, control);
    },
  };
  const text = renderText(element.text, surface.people);
  const control = href ? h('a', { ...props, href, ...away }, text) : h('button', { ...props, type: 'button' }, text);
  return control;
}

function drawOverflow(element, block, surface) {
  const items = (element.options ?? []).map((option) => ({ text: plainOf(option.text), description: plainOf(option.description), value: option.value, url: safeUrl(option.url) }));
  return createMenu({
    label: 'More actions', trigger: icon('more', 18), items, attributes: markers(block, element),
    onchoose: (item) => act(surface, block, element, item.value, null),
  });
}

function drawFeedback(element, block, surface) {
  const one = (button, sign) => {
    if (!button) return null;
    const control = h('button', {
      type: 'button', class: 'button button-quiet', 'aria-label': button.accessibility_label, 'data-value': button.value, ...markers(block, element),
      onclick: async () => {
        if (!(await act(surface, block, element, button.value, control))) return;
        for (const other of control.parentElement.children) other.setAttribute('aria-pressed', String(other === control));
      },
    }, h('span', { class: 'emoji', 'aria-hidden': 'true' }, sign), ' ', renderText(button.text, surface.people));
    return control;
  };
  return h('span', { class: 'feedback', role: 'group', 'aria-label': 'Was this helpful?' }, one(element.positive_button, '👍'), one(element.negative_button, '👎'));
}

function drawIconButton(element, block, surface) {
  const visible = element.visible_to_user_ids;
  if (visible?.length && !visible.includes(surface.people.me?.id)) return null;
  const control = h('button', {
    type: 'button', class: 'button button-quiet', 'aria-label': element.accessibility_label ?? plainOf(element.text), 'data-value': element.value, ...markers(block, element),
    onclick: () => act(surface, block, element, element.value, control),
  }, element.icon === 'trash' ? h('span', { class: 'emoji', 'aria-hidden': 'true' }, '🗑️') : icon('more', 16), ' ', renderText(element.text, surface.people));
  return control;
}
