// The composer's completions: people after @, channels after #, commands after /, emoji after :.

import { avatar } from '../widgets/avatar.js';
import { fullNameOf, titleOf } from '../directory.js';
import { h, uid } from '../widgets/dom.js';
import { emojiFor, emojiNames } from '../emoji.js';
import { follow, place } from '../widgets/floating.js';
import { icon } from '../widgets/icons.js';

export function createCompletion(field, people, { commands }) {
  const id = uid('completion');
  const list = h('div', { id, class: 'listbox completion', role: 'listbox', popover: 'manual', 'aria-label': 'Suggestions', 'data-testid': 'completion' });
  let found = null;
  let active = 0;
  let stopWatching = () => {};

  field.setAttribute('aria-autocomplete', 'list');
  field.setAttribute('aria-controls', id);
  field.addEventListener('input', update);
  field.addEventListener('click', update);
  field.addEventListener('blur', close);
  list.addEventListener('mousedown', (event) => event.preventDefault());

  function update() {
    found = field.selectionStart === field.selectionEnd ? proposals(field.value.slice(0, field.selectionStart), people(), commands()) : null;
    if (!found?.options.length) {
      close();
      return;
    }
    active = 0;
    list.replaceChildren(...found.options.map((option, index) => h('div', {
      class: 'option', role: 'option', id: `${id}-${index}`, 'data-testid': 'completion-option', 'data-value': option.insert.trim(),
      onclick: () => take(index), onmousemove: () => setActive(index),
    }, option.face, h('span', { class: 'option-line' }, h('strong', null, option.text), option.description ? h('span', { class: 'option-description' }, option.description) : null))));
    if (!list.matches(':popover-open')) {
      list.showPopover();
      stopWatching = follow(list, field, { matchWidth: true });
    }
    place(list, field, { matchWidth: true });
    setActive(0);
  }

  function setActive(index) {
    active = index;
    [...list.children].forEach((row, i) => {
      row.classList.toggle('option-active', i === index);
      row.setAttribute('aria-selected', String(i === index));
    });
    list.children[index]?.scrollIntoView({ block: 'nearest' });
    field.setAttribute('aria-activedescendant', `${id}-${index}`);
  }

  function take(index) {
    const option = found.options[index];
    field.setRangeText(option.insert, found.from, field.selectionStart, 'end');
    close();
    field.dispatchEvent(new Event('input', { bubbles: true }));
    close();
  }

  function close() {
    found = null;
    stopWatching();
    if (list.matches(':popover-open')) list.hidePopover();
    field.removeAttribute('aria-activedescendant');
  }

  // onKey returns whether the completion has handled the key.
  function onKey(event) {
    if (!found) return false;
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    const chosen = event.key === 'Tab' || (event.key === 'Enter' && !event.shiftKey);
    if (chosen && found.options[active].insert.trim() === field.value.slice(found.from, field.selectionStart)) {
      // If the name is complete, Enter sends the message.
      close();
      return false;
    }
    if (step) setActive((active + step + found.options.length) % found.options.length);
    else if (chosen) take(active);
    else if (event.key === 'Escape') close();
    else return false;
    event.preventDefault();
    event.stopPropagation();
    return true;
  }

  return { element: list, update, close, onKey };
}

// proposals returns {from, options} for the text before the caret, or null.
export function proposals(before, people, commands) {
  const command = /^\/\S*$/.exec(before);
  if (command) {
    const options = commands.filter((one) => one.command.startsWith(before)).map((one) => ({ insert: `${one.command} `, text: one.command, description: [one.usage_hint, one.description].filter(Boolean).join(' · ') }));
    return { from: 0, options };
  }
  const match = /(?:^|[\s([{"'])([@#:])([\p{L}\p{N}_.+-]*)$/u.exec(before);
  if (!match) return null;
  const [, sign, typed] = match;
  const from = before.length - typed.length - 1;
  const word = typed.toLowerCase();
  const finders = { '@': mentionOptions, '#': channelOptions, ':': emojiOptions };
  return { from, options: finders[sign](word, people).slice(0, 8) };
}

function begins(word, ...names) {
  return names.some((name) => String(name ?? '').toLowerCase().split(/[\s.-]+/).some((part) => part.startsWith(word)) || String(name ?? '').toLowerCase().startsWith(word));
}

function mentionOptions(word, people) {
  const users = people.everyone.filter((user) => !user.deleted && begins(word, people.name(user.id), fullNameOf(user), user.name))
    // The bot comes first, because most messages in the workspace are for the bot.
    .sort((a, b) => Number(b.is_bot) - Number(a.is_bot))
    .map((user) => ({ insert: `@${people.name(user.id)} `, text: people.name(user.id), description: user.is_bot ? 'App' : titleOf(user), face: avatar(user, 'tiny') }));
  const groups = people.groups.filter((group) => begins(word, group.handle, group.name))
    .map((group) => ({ insert: `@${group.handle} `, text: `@${group.handle}`, description: group.name, face: icon('people', 18) }));
  return [...users, ...groups];
}

function channelOptions(word, people) {
  return people.channels.filter((channel) => !channel.is_im && !channel.is_mpim && begins(word, channel.name))
    .map((channel) => ({ insert: `#${channel.name} `, text: `#${channel.name}`, description: channel.topic?.value, face: icon(channel.is_private ? 'lock' : 'hash', 16) }));
}

function emojiOptions(word) {
  if (word.length < 2) return [];
  return emojiNames().filter((name) => name.startsWith(word)).map((name) => ({ insert: `:${name}: `, text: `:${name}:`, face: h('span', { class: 'emoji' }, emojiFor(name)) }));
}
