// Pictures of people, made from their names: initials on a colour that stays the same everywhere.

import { fullNameOf, nameOf } from './directory.js';
import { h } from './dom.js';

const colours = 8;

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

function colourOf(id) {
  let hash = 7;
  for (const char of id) hash = (hash * 31 + char.codePointAt(0)) >>> 0;
  return hash % colours;
}
