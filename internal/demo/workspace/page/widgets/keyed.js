// A list of elements that is brought up to date in place: what hasn't changed keeps its element,
// and with it the focus, the selection and what is unfolded or opened in it.

import { rememberFocus } from './dom.js';

export class KeyedList {
  constructor(container) {
    this.container = container;
    this.shown = new Map();
  }

  // update takes {key, signature, make} in order and answers the keys that were not there before.
  update(items) {
    const before = this.shown;
    this.shown = new Map();
    const added = [];
    let place = this.container.firstChild;
    for (const item of items) {
      const old = before.get(item.key);
      let { element } = old ?? {};
      if (!old) {
        element = item.make();
        added.push(item.key);
      } else if (old.signature !== item.signature) {
        element = exchange(old.element, item.make());
        if (place === old.element) place = element;
      }
      before.delete(item.key);
      if (place === element) place = place.nextSibling;
      else this.container.insertBefore(element, place);
      this.shown.set(item.key, { element, signature: item.signature });
    }
    for (const { element } of before.values()) element.remove();
    return added;
  }

  element(key) {
    return this.shown.get(key)?.element;
  }
}

function exchange(old, made) {
  const restore = rememberFocus(old);
  const inside = old.contains(document.activeElement);
  old.replaceWith(made);
  restore(made);
  // What had the focus may be gone (the buttons of a card that was decided): then the message takes it,
  // so that the keyboard isn't thrown back to the top.
  if (inside && !made.contains(document.activeElement)) made.querySelector('[tabindex]')?.focus({ preventScroll: true });
  return made;
}
