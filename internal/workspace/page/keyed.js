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
  const hadFocus = old === document.activeElement;
  const inside = old.contains(document.activeElement);
  old.replaceWith(made);
  if (hadFocus) made.focus({ preventScroll: true });
  else if (inside) focusAgain(made, restore);
  return made;
}

// The focus was on something inside of an element that is gone. Where its successor is gone too (the buttons of a card
// that was decided), the message itself takes the focus, so that the keyboard isn't thrown back to the top.
function focusAgain(made, restore) {
  restore(made);
  if (!made.contains(document.activeElement) && made.hasAttribute('tabindex')) made.focus({ preventScroll: true });
}
