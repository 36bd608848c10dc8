// Short notes at the edge of the page that disappear after a while.

import { h, say } from '../widgets/dom.js';
import { icon } from '../widgets/icons.js';

const seconds = 6;

// toast shows a note. A second note with the same key replaces the first.
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
  let timer = 0;
  // A note stays while the pointer or the keyboard focus is on it.
  const wait = () => {
    clearTimeout(timer);
    if (!note.matches(':hover, :focus-within')) timer = setTimeout(close, seconds * 1000);
  };
  for (const event of ['pointerenter', 'pointerleave', 'focusin']) note.addEventListener(event, wait);
  note.addEventListener('focusout', () => setTimeout(wait)); // wait until the focus has moved
  makeRoom(holder);
  holder.append(note);
  wait();
  while (holder.children.length > 2) holder.firstElementChild.remove();
  say([text, detail].filter(Boolean).join('. '));
}

// makeRoom keeps the list of channels, and the introduction below it, above the notes.
function makeRoom(holder) {
  if (holder.dataset.observed) return;
  holder.dataset.observed = 'true';
  const room = () => document.documentElement.style.setProperty('--toasts', holder.childElementCount ? `${holder.offsetHeight + 12}px` : '0px');
  new ResizeObserver(room).observe(holder);
  new MutationObserver(room).observe(holder, { childList: true });
}

export function dropToast(key) {
  document.querySelector(`#toasts [data-toast="${CSS.escape(key)}"]`)?.remove();
}
