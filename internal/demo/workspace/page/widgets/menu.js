// A menu with its button, for overflow menus, the actions of a message, and emoji.

import { h } from './dom.js';
import { follow } from './floating.js';

// createMenu draws the button and its menu. items are {text, description, value, url}, or a function that returns them.
// onchoose gets the chosen item. With grid, the items are side by side.
export function createMenu({ label, trigger, attributes = {}, items, onchoose, grid = false }) {
  const menu = h('div', { class: grid ? 'menu menu-grid' : 'menu', role: 'menu', popover: 'auto', 'aria-label': label });
  const button = h('button', {
    type: 'button', class: 'button button-icon', 'aria-haspopup': 'menu', 'aria-expanded': 'false', 'aria-label': label, ...attributes,
    onclick: () => (menu.matches(':popover-open') ? menu.hidePopover() : menu.showPopover()),
    onkeydown: (event) => {
      if (event.key !== 'ArrowDown') return;
      event.preventDefault();
      menu.showPopover();
    },
  }, trigger);

  // Fill the menu when it is opened, because every message of a long list has menus.
  const fill = ({ newState }) => {
    if (newState !== 'open') return;
    if (typeof items === 'function') menu.replaceChildren(...items().map(draw));
    else if (!menu.childElementCount) menu.append(...items.map(draw));
  };
  const draw = (item) => {
    const props = {
      class: 'menu-item', role: 'menuitem', tabindex: '-1', 'aria-label': item.label, title: item.label, 'data-testid': 'menu-item', 'data-value': item.value,
      onclick: () => {
        menu.hidePopover();
        button.focus();
        onchoose(item);
      },
    };
    const inside = [h('span', null, item.text), item.description ? h('span', { class: 'option-description' }, item.description) : null];
    return item.url ? h('a', { ...props, href: item.url, target: '_blank', rel: 'noopener noreferrer' }, inside) : h('button', { ...props, type: 'button' }, inside);
  };

  menu.addEventListener('beforetoggle', fill);
  let stopWatching = () => {};
  menu.addEventListener('toggle', (event) => {
    const open = event.newState === 'open';
    button.setAttribute('aria-expanded', String(open));
    stopWatching();
    if (!open) return;
    stopWatching = follow(menu, button, { alignEnd: true });
    menu.firstElementChild?.focus();
  });
  menu.addEventListener('keydown', (event) => {
    const all = [...menu.children];
    const here = all.indexOf(document.activeElement);
    const next = (here + 1) % all.length;
    const previous = (here - 1 + all.length) % all.length;
    const to = { ArrowDown: next, ArrowRight: next, ArrowUp: previous, ArrowLeft: previous, Home: 0, End: all.length - 1 }[event.key];
    if (event.key === 'Tab') menu.hidePopover();
    if (event.key === 'Escape') event.stopPropagation();
    if (to === undefined) return;
    event.preventDefault();
    all[to].focus();
  });
  return h('span', { class: 'menu-holder' }, button, menu);
}
