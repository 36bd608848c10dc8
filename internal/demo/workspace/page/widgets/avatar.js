// Pictures of people: initials on a colour. A person has the same colour everywhere on the page.

import { fullNameOf, nameOf } from '../directory.js';
import { h } from './dom.js';

const colours = 10;

export function avatar(user, size = 'medium') {
  const bot = Boolean(user?.is_bot);
  return h('span', { class: `avatar avatar-${size} ${bot ? 'avatar-bot' : `avatar-${colourOf(user?.id ?? '')}`}`, 'aria-hidden': 'true' }, bot ? mark(user) : initials(user));
}

function initials(user) {
  const words = fullNameOf(user).split(/[\s.]+/).filter(Boolean);
  const letters = words.length > 1 ? [words[0], words[words.length - 1]] : [words[0] ?? '?'];
  return letters.map((word) => [...word][0].toUpperCase()).join('');
}

function mark(user) {
  return [...(nameOf(user) || '?')][0].toUpperCase();
}

// learnColours assigns different colours to the people of a workspace, as long as there are enough colours.
export function learnColours(users) {
  learned = new Map(users.filter((user) => !user.is_bot).map((user, index) => [user.id, index % colours]));
}

let learned = new Map();

function colourOf(id) {
  if (learned.has(id)) return learned.get(id);
  let hash = 7;
  for (const char of id) hash = (hash * 31 + char.codePointAt(0)) >>> 0;
  return hash % colours;
}
