// Long texts are folded, with a button to unfold them. An unfolded text stays unfolded when the message is redrawn.

import { h } from '../widgets/dom.js';

const unfolded = new Set();
const maxLines = 30;
const maxCharacters = 2400;

// longText returns whether a text is long enough to fold.
export function longText(text) {
  const source = String(text ?? '');
  return source.length > maxCharacters || source.split('\n').length > maxLines;
}

// clamp folds an element. key identifies the text.
export function clamp(key, element, long) {
  if (!long) return element;
  const box = h('div', { class: 'clamp' }, element);
  const button = h('button', {
    type: 'button', class: 'link-button', 'data-testid': 'show-more', 'data-key': `more/${key}`,
    onclick: () => {
      if (unfolded.has(key)) unfolded.delete(key);
      else unfolded.add(key);
      draw();
    },
  });
  const draw = () => {
    const open = unfolded.has(key);
    box.classList.toggle('clamp-open', open);
    button.textContent = open ? 'Show less' : 'Show more';
    button.setAttribute('aria-expanded', String(open));
  };
  draw();
  return h('div', null, box, button);
}
