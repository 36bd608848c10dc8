// The sidebar: channels, direct messages and the app.

import { avatar } from '../widgets/avatar.js';
import { fullNameOf, titleOf } from '../directory.js';
import { h, replace } from '../widgets/dom.js';
import { drawHint } from './hint.js';
import { icon } from '../widgets/icons.js';
import { createPause, drawQuiet, inQuiet } from '../quiet.js';
import { routeTo } from '../route.js';
import { watchMore } from '../widgets/more.js';
import { badgeOf } from '../unread.js';

export function drawSidebar(container, app) {
  if (!container.childElementCount) {
    container.append(h('header', { class: 'sidebar-head' }), h('div', { class: 'sidebar-scroll' }, h('div'), h('div')), h('footer', { class: 'sidebar-foot' }));
  }
  const [head, { children: [lists, hint] }, foot] = container.children;
  drawHead(head, app);
  drawIntroduction(hint, app);
  const { people } = app;
  const dms = people.channels.filter((channel) => channel.is_im && channel.user !== people.bot?.id);
  const channels = people.channels.filter((channel) => !channel.is_im).sort((a, b) => a.name.localeCompare(b.name));
  replace(lists,
    section('Channels', channels.map((channel) => entry(channel, app))),
    section('Direct messages', dms.map((channel) => entry(channel, app))),
    people.bot ? section('Apps', [botEntry(app)]) : null);
  watchMore(container.children[1]);
  replace(foot, themeButton(app),
    h('button', { type: 'button', class: 'button button-icon', 'data-key': 'jump', 'data-testid': 'open-jump', 'aria-label': 'Go to a channel or person', title: 'Go to… (Ctrl+K)', onclick: () => app.jump() }, icon('find', 18)),
    app.hint ? h('button', { type: 'button', class: 'button button-icon', 'data-key': 'help', 'data-testid': 'show-hint', 'aria-label': 'Introduction', title: 'Introduction', 'aria-expanded': String(Boolean(app.hintOpen)), onclick: () => (app.hintOpen ? app.closeHint() : app.showHint()) }, icon('help', 18)) : null);
}

// Unchanged elements stay, so that an open menu is not closed and the introduction appears only once.
const drawn = new WeakMap();

function isDrawn(element, ...state) {
  const signature = JSON.stringify(state);
  if (drawn.get(element) === signature) return true;
  drawn.set(element, signature);
  return false;
}

function drawIntroduction(container, app) {
  const open = Boolean(app.hint && app.hintOpen);
  if (isDrawn(container, open, app.hint, app.people.me?.id)) return;
  replace(container, open ? drawHint(app.hint, app.people, { close: () => app.closeHint(), offer: (text) => app.offer(text) }) : null);
}

function drawHead(head, app) {
  const { me, tz } = app.people;
  const about = me ? [fullNameOf(me), titleOf(me)].filter(Boolean).join(' · ') : '';
  if (isDrawn(head, app.team?.name, me?.id, about, inQuiet(me, tz), me?.dnd?.snooze_enabled)) return;
  replace(head,
    h('div', { class: 'who' }, h('div', { class: 'team', 'data-testid': 'team' }, app.team?.name ?? 'Workspace'),
      me ? h('div', { class: 'you', 'data-testid': 'you', 'data-user': me.id }, drawQuiet(me, app.people) ?? h('span', { class: 'you-dot' }), about) : null),
    me ? createPause(me, tz, (until) => app.snooze(until)) : null);
}

function section(title, entries) {
  if (!entries.length) return null;
  return h('section', { class: 'sidebar-section', 'aria-label': title }, h('h2', null, title), h('ul', null, entries.map((one) => h('li', null, one))));
}

function entry(channel, app) {
  const { people } = app;
  const other = channel.is_im ? people.user(channel.user) : null;
  const sign = other ? avatar(other, 'tiny') : icon(channel.is_private ? 'lock' : 'hash', 17);
  return line(channel, people.channelName(channel), sign, app, channel.id, app.place()?.id === channel.id || app.route.place === channel.id, other ? drawQuiet(other, people) : null);
}

// The list has the app's DM even before the DM has a message.
function botEntry(app) {
  const { bot, me } = app.people;
  const dm = app.people.channels.find((channel) => channel.is_im && channel.user === bot.id);
  const place = dm?.id ?? bot.id;
  const here = [place, 'home', bot.id].includes(app.route.place) && Boolean(me);
  return line(dm ?? { id: bot.id, is_im: true, user: bot.id }, app.people.name(bot.id), avatar(bot, 'tiny'), app, place, here);
}

function line(channel, name, sign, app, place, here, quiet = null) {
  const badge = badgeOf(channel);
  const unread = channel.unread_count > 0 || badge > 0;
  return h('a', {
    class: `entry${unread ? ' entry-unread' : ''}`, href: routeTo({ user: app.people.me?.id ?? '', place }), 'aria-current': here ? 'page' : null,
    'data-testid': 'channel', 'data-channel': channel.id, 'data-name': name, 'data-unread': unread ? Math.max(channel.unread_count ?? 0, badge) : null, 'data-key': `channel/${channel.id}`,
  }, h('span', { class: 'entry-sign' }, sign), h('span', { class: 'entry-name' }, name), quiet, badge ? h('span', { class: 'badge', 'data-testid': 'badge' }, String(badge)) : null, unread ? h('span', { class: 'visually-hidden' }, ' unread') : null);
}

function themeButton(app) {
  const dark = app.theme.dark;
  const label = dark ? 'Use light colours' : 'Use dark colours';
  return h('button', { type: 'button', class: 'button button-icon', 'data-testid': 'theme', 'data-key': 'theme', 'aria-label': label, title: label, onclick: () => app.theme.toggle() }, icon(dark ? 'sun' : 'moon', 18));
}
