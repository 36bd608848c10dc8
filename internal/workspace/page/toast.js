// Short notes at the edge of the page that go away by themselves.

import { h, say } from './dom.js';
import { icon } from './icons.js';

const seconds = 20;

// toast shows a note; a second one with the same key takes the first one's place.
export function toast({ key, face, text, detail, action, href }) {
  dropToast(key);
  const holder = document.getElementById('toasts');
  const close = () => {
    clearTimeout(timer);
    note.remove();
  };
  const note = h('div', { class: 'toast', 'data-testid': 'toast', 'data-toast': key },
    face, h('div', { class: 'toast-text' }, h('strong', null, text), detail ? h('span', { class: 'muted' }, detail) : null),
    href ? h('a', { class: 'button', href, onclick: close }, action) : null,
    h('button', { type: 'button', class: 'button button-icon', 'aria-label': 'Dismiss', onclick: close }, icon('close', 16)));
  let timer = setTimeout(close, seconds * 1000);
  // Whoever reads or reaches it by keyboard gets the time to do so.
  for (const event of ['pointerenter', 'focusin']) note.addEventListener(event, () => clearTimeout(timer));
  for (const event of ['pointerleave', 'focusout']) note.addEventListener(event, () => { timer = setTimeout(close, seconds * 1000); });
  holder.append(note);
  while (holder.children.length > 3) holder.firstElementChild.remove();
  say([text, detail].filter(Boolean).join('. '));
}

export function dropToast(key) {
  document.querySelector(`#toasts [data-toast="${CSS.escape(key)}"]`)?.remove();
}
