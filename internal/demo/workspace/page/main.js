// Connects the parts of the page: the App reads the state, the panes draw it, and events say which part to read.

import { App } from './app.js';
import { Events } from './events.js';
import { fullNameOf } from './directory.js';
import { openJump } from './panes/jump.js';
import { turnStatuses } from './panes/message.js';
import { Modals } from './panes/modal.js';
import { Place } from './panes/place.js';
import { drawRail } from './panes/rail.js';
import { rememberedPerson, rememberHint, rememberPerson, wasDismissed } from './remember.js';
import { routeTo } from './route.js';
import { drawSidebar } from './panes/sidebar.js';
import { Theme } from './theme.js';
import { Thread } from './panes/thread.js';

const byId = (id) => document.getElementById(id);
const narrow = matchMedia('(max-width: 760px)');

let panes = null;
const app = new App({ draw });
app.theme = new Theme(() => draw());
app.showHint = () => setHint(true);
app.closeHint = () => setHint(false);
app.offer = offer;
app.jump = () => openJump(app);
panes = { place: new Place(app, byId('place')), thread: new Thread(app, byId('thread')), modals: new Modals(app) };

function draw() {
  if (!panes) return;
  const { route } = app;
  if (app.hint && app.hintOpen === undefined) app.hintOpen = !wasDismissed(app.hint);
  byId('app').dataset.screen = route.thread ? 'thread' : route.place ? 'place' : 'list';
  document.body.dataset.ready = String(isReady());
  drawRail(byId('rail'), app);
  drawSidebar(byId('sidebar'), app);
  panes.place.draw();
  panes.thread.draw();
  panes.modals.show(app.views);
  document.title = title();
}

// isReady returns whether the App has read everything that the address names.
function isReady() {
  const { route } = app;
  if (app.problem) return true;
  if (!app.people.me || (!route.place && !narrow.matches)) return false;
  if (app.atHome) return app.home !== undefined;
  if (route.place && !app.messages) return false;
  return !route.thread || Boolean(app.thread || app.threadProblem);
}

function title() {
  const { people, channel } = app;
  const waiting = people.me ? app.unread.waiting(people.me.id) : 0;
  const where = app.atHome ? 'Home' : channel ? (channel.is_im ? '' : '#') + people.channelName(channel) : '';
  return `${waiting ? `(${waiting}) ` : ''}${[where, people.me ? fullNameOf(people.me) : '', app.team?.name ?? 'Workspace'].filter(Boolean).join(' · ')}`;
}

function setHint(open) {
  app.hintOpen = open;
  rememberHint(app.hint, open);
  draw();
  byId('sidebar').querySelector(open ? '.welcome' : '[data-testid="show-hint"]')?.scrollIntoView?.({ block: 'nearest' });
}

// offer puts a text from the introduction into the message field of the open channel, or of the first channel.
async function offer(text) {
  const { route, people } = app;
  if (!route.place || app.atHome) {
    const first = people.channels.find((channel) => channel.is_channel);
    if (!first) return;
    history.pushState(null, '', routeTo({ user: route.user, place: first.id }));
    await follow();
  }
  panes.place.composer.offer(text);
}

async function follow() {
  const before = app.route;
  await app.go(location.hash, { narrow: narrow.matches });
  const { route } = app;
  rememberPerson(route.user);
  // On a phone the focus would open the keyboard, which hides half of the screen.
  if (narrow.matches) return;
  if (route.message) return;
  if (route.thread && route.thread !== before.thread) panes.thread.focus();
  else if (before.thread && !route.thread && before.place === route.place) returnFrom(before.thread);
  else if (route.place !== before.place || route.user !== before.user) panes.place.focus();
}

// returnFrom focuses the message whose thread was closed.
function returnFrom(thread) {
  const message = byId('place').querySelector(`.message[data-ts="${CSS.escape(thread)}"]`);
  if (message) message.focus({ preventScroll: true });
  else panes.place.focus();
}

const partsOf = {
  message: ['messages', 'thread', 'channels'], message_changed: ['messages', 'thread'], message_deleted: ['messages', 'thread', 'channels'],
  ephemeral: ['messages', 'thread'], reaction: ['messages', 'thread'], status: ['messages', 'thread'],
  view: ['views'], home: ['home'], channel: ['channels', 'messages'], read: ['channels'], people: ['people', 'channels'],
};
const ofOnePerson = new Set(['ephemeral', 'view', 'home', 'read']);
let laterOthers = 0;

function onEvent(event) {
  const parts = partsOf[event.type];
  if (!parts) return;
  if (['message', 'message_deleted', 'read', 'channel'].includes(event.type)) {
    clearTimeout(laterOthers);
    laterOthers = setTimeout(() => app.refresh('others'), 250);
  }
  if (event.type === 'message' && event.thread_ts && event.thread_ts !== event.ts) app.hearReply(event);
  if (ofOnePerson.has(event.type) && event.user && event.user !== app.people.me?.id) return;
  // A message in another channel only changes the list of channels.
  const elsewhere = event.channel && app.channel && event.channel !== app.channel.id;
  app.refresh(...parts.filter((part) => !(elsewhere && (part === 'messages' || part === 'thread'))));
}

new Events({
  onEvent,
  onBack: () => app.refresh('people', 'channels', 'messages', 'thread', 'views', 'home', 'others'),
  onState: (connected) => { byId('offline').hidden = connected; },
});

if (!location.hash && rememberedPerson()) history.replaceState(null, '', routeTo({ user: rememberedPerson() }));

byId('skip').addEventListener('click', () => panes.place.focus());
addEventListener('hashchange', follow);
narrow.addEventListener('change', follow);
document.addEventListener('visibilitychange', () => {
  // Read the changes that happened while the tab was hidden.
  if (document.visibilityState === 'visible') app.refresh('messages', 'thread', 'channels');
});
setInterval(() => {
  turnStatuses();
  app.tick();
}, 1000);
// The workspace sends no event when the app connects, so the page polls until the app is connected.
setInterval(() => app.connected || document.visibilityState === 'hidden' || app.refresh('people'), 3000);

document.addEventListener('keydown', (event) => {
  if (document.querySelector('dialog[open]') || event.defaultPrevented) return;
  const { route } = app;
  if (event.key === 'Escape' && route.thread && !document.querySelector(':popover-open')) location.hash = routeTo({ user: route.user, place: route.place });
  if (event.key.toLowerCase() === 'k' && (event.ctrlKey || event.metaKey) && app.people.me) {
    event.preventDefault();
    openJump(app);
  }
  if (event.key === 'F6') {
    event.preventDefault();
    nextRegion(event.shiftKey ? -1 : 1);
  }
});

// nextRegion moves the focus between people, channels, messages, composer and thread, as F6 does in Slack.
function nextRegion(step) {
  const regions = ['#rail', '#sidebar', '#place .message-list', '#place .composer', '#thread .message-list', '#thread .composer'].map((selector) => document.querySelector(selector)).filter((region) => region?.offsetParent);
  const here = regions.findIndex((region) => region.contains(document.activeElement));
  for (let i = 1; i <= regions.length; i += 1) {
    const region = regions[(((here + step * i) % regions.length) + regions.length) % regions.length];
    const target = region.querySelector('[aria-current], .message[tabindex="0"], textarea, a, button');
    if (target) {
      target.focus();
      return;
    }
  }
}

follow();
