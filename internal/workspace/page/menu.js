// A menu that a button opens: overflow menus.

import { h } from './dom.js';
import { onLeave, place } from './floating.js';

// createMenu draws the button and its menu. items are {text, description, value, url}; onchoose gets one of them.
export function createMenu({ label, trigger, attributes = {}, items, onchoose }) {
  const menu = h('div', { class: 'menu', role: 'menu', popover: 'auto', 'aria-label': label });
  const button = h('button', {
    type: 'button', class: 'button button-icon', 'aria-haspopup': 'menu', 'aria-expanded': 'false', 'aria-label': label, ...attributes,
    onclick: () => (menu.matches(':popover-open') ? menu.hidePopover() : menu.showPopover()),
    onkeydown: (event) => {
      if (event.key !== 'ArrowDown') return;
      event.preventDefault();
      menu.showPopover();
    },
  }, trigger);

  for (const item of items) {
    const props = {
      class: 'menu-item', role: 'menuitem', tabindex: '-1', 'data-testid': 'menu-item', 'data-value': item.value,
      onclick: () => {
        menu.hidePopover();
        button.focus();
        onchoose(item);
      },
    };
    const inside = [h('span', null, item.text), item.description ? h('span', { class: 'option-description' }, item.description) : null];
    menu.append(item.url ? h('a', { ...props, href: item.url, target: '_blank', rel: 'noopener noreferrer' }, inside) : h('button', { ...props, type: 'button' }, inside));
  }

  let stopWatching = () => {};
  menu.addEventListener('toggle', (event) => {
    const open = event.newState === 'open';
    button.setAttribute('aria-expanded', String(open));
    stopWatching();
    if (!open) return;
    place(menu, button, { alignEnd: true });
    stopWatching = onLeave(menu, () => menu.hidePopover());
    menu.firstElementChild?.focus();
  });
  menu.addEventListener('keydown', (event) => {
    const all = [...menu.children];
    const here = all.indexOf(document.activeElement);
    const to = { ArrowDown: (here + 1) % all.length, ArrowUp: (here - 1 + all.length) % all.length, Home: 0, End: all.length - 1 }[event.key];
    if (event.key === 'Tab') menu.hidePopover();
    if (event.key === 'Escape') event.stopPropagation();
    if (to === undefined) return;
    event.preventDefault();
    all[to].focus();
  });
  return h('span', { class: 'menu-holder' }, button, menu);
}
