// A list of elements that is updated in place: an unchanged element stays, and with it the focus, the selection and
// what is unfolded or open in it.

import { rememberFocus } from './dom.js';

export class KeyedList {
  constructor(container) {
    this.container = container;
    this.shown = new Map();
  }

  // update takes {key, signature, make} in order and returns the new keys.
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
  // If the focused element is gone (such as the buttons of a decided card), the message gets the focus; otherwise the
  // focus would go back to the top of the page.
  if (inside && !made.contains(document.activeElement)) made.querySelector('[tabindex]')?.focus({ preventScroll: true });
  return made;
}
