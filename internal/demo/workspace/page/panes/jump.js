// Ctrl+K: go to a channel, a person's DM or the app's Home by typing a few letters of its name.

import { avatar } from '../widgets/avatar.js';
import { fullNameOf, titleOf } from '../directory.js';
import { h, uid } from '../widgets/dom.js';
import { icon } from '../widgets/icons.js';
import { routeTo } from '../route.js';

export function openJump(app) {
  const listId = uid('jump');
  let found = [];
  let active = 0;
  const list = h('div', { id: listId, class: 'jump-list', role: 'listbox', 'aria-label': 'Places' });
  const field = h('input', {
    class: 'jump-field', type: 'text', role: 'combobox', 'aria-expanded': 'true', 'aria-controls': listId, 'aria-label': 'Go to', autocomplete: 'off', spellcheck: 'false',
    placeholder: 'Go to a channel or a person…', 'data-testid': 'jump-field', oninput: draw,
    onkeydown: (event) => {
      const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
      if (step && found.length) setActive((active + step + found.length) % found.length);
      else if (event.key === 'Enter') go(active);
      else return;
      event.preventDefault();
    },
  });
  const dialog = h('dialog', { class: 'jump', 'aria-label': 'Go to', 'data-testid': 'jump' }, h('div', { class: 'jump-head' }, icon('find', 18), field), list);
  dialog.addEventListener('click', (event) => event.target === dialog && dialog.close());
  dialog.addEventListener('close', () => dialog.remove());

  function draw() {
    const word = field.value.trim().toLowerCase().replace(/^[#@]/, '');
    found = places(app).filter((place) => place.words.some((one) => one.toLowerCase().includes(word))).slice(0, 9);
    list.replaceChildren(...(found.length ? found.map((place, index) => h('div', {
      class: 'option', role: 'option', id: `${listId}-${index}`, 'data-testid': 'jump-option', onclick: () => go(index), onmousemove: () => setActive(index),
    }, place.face(), h('span', { class: 'option-line' }, h('strong', null, place.name), place.about ? h('span', { class: 'option-description' }, place.about) : null))) : [h('div', { class: 'listbox-note' }, 'Nothing found.')]));
    setActive(0);
  }

  function setActive(index) {
    active = index;
    list.querySelectorAll('.option').forEach((row, i) => {
      row.classList.toggle('option-active', i === index);
      row.setAttribute('aria-selected', String(i === index));
    });
    field.setAttribute('aria-activedescendant', found.length ? `${listId}-${index}` : '');
  }

  function go(index) {
    if (!found[index]) return;
    dialog.close();
    location.hash = routeTo({ user: app.people.me.id, place: found[index].place });
  }

  document.body.append(dialog);
  dialog.showModal();
  draw();
}

function places(app) {
  const { people } = app;
  const channels = people.channels.filter((channel) => !channel.is_im)
    .map((channel) => ({ place: channel.id, name: channel.name, about: channel.topic?.value, words: [channel.name], face: () => icon(channel.is_private ? 'lock' : 'hash', 18) }));
  const users = people.everyone.filter((user) => !user.deleted && user.id !== people.me?.id)
    .map((user) => ({ place: user.id, name: fullNameOf(user), about: user.is_bot ? 'App' : titleOf(user), words: [fullNameOf(user), people.name(user.id), titleOf(user)], face: () => avatar(user, 'tiny') }));
  const home = people.bot ? [{ place: 'home', name: `${people.name(people.bot.id)}: Home`, about: 'What waits for you', words: ['Home', people.name(people.bot.id)], face: () => icon('home', 18) }] : [];
  return [...channels, ...users, ...home];
}
