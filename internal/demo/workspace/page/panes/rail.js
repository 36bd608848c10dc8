// The strip "You are": the people as whom one can use the workspace, each with a badge for unread messages.

import { avatar } from '../widgets/avatar.js';
import { fullNameOf, kindOf, nameOf, titleOf } from '../directory.js';
import { h, replace } from '../widgets/dom.js';
import { drawQuiet } from '../quiet.js';
import { watchMore } from '../widgets/more.js';

export function drawRail(container, app) {
  const people = app.persons();
  replace(container, h('h2', { class: 'rail-title', id: 'rail-title' }, 'You are'),
    h('ul', { class: 'rail-list', 'aria-labelledby': 'rail-title' }, people.map((user) => h('li', null, person(user, app)))));
  watchMore(container);
  // The strip can be longer than the screen, so scroll to the current person.
  if (container.dataset.user === app.people.me?.id) return;
  container.dataset.user = app.people.me?.id ?? '';
  container.querySelector('.person-me')?.scrollIntoView({ block: 'nearest', inline: 'nearest' });
}

function person(user, app) {
  const waiting = app.unread.waiting(user.id);
  const me = user.id === app.people.me?.id;
  const about = [fullNameOf(user), titleOf(user) || kindOf(user)].filter(Boolean).join(' · ');
  return h('a', {
    class: me ? 'person person-me' : 'person', href: app.doorOf(user.id), title: about, 'aria-current': me ? 'true' : null,
    'data-testid': 'person', 'data-user': user.id, 'data-key': `person/${user.id}`, 'data-unread': waiting || null,
  },
  h('span', { class: 'person-face' }, avatar(user, 'large'), waiting ? h('span', { class: 'badge', 'data-testid': 'person-badge' }, String(waiting), h('span', { class: 'visually-hidden' }, ' unread')) : null, drawQuiet(user, app.people)),
  h('span', { class: 'person-name' }, nameOf(user).split(/\s+/)[0]),
  h('span', { class: 'person-title' }, titleOf(user) || kindOf(user)));
}
