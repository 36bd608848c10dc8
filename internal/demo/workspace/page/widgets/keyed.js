// A list of elements that is updated in place. An unchanged element stays, and keeps the focus, the selection, and its
// unfolded texts and open menus.

import { rememberFocus } from './dom.js';

export class KeyedList {
  constructor(container) {
    this.container = container;
    this.shown = new Map();
  }

  // update takes the items {key, signature, make} in order, and returns the keys that were not shown before.
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
  // If the focused element is gone, such as a button of a decided card, focus the message. Otherwise the browser would
  // move the focus to the top of the page.
  if (inside && !made.contains(document.activeElement)) made.querySelector('[tabindex]')?.focus({ preventScroll: true });
  return made;
}
