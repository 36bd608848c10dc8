// The middle of the page: a channel or DM with its head, messages and composer, or the bot's Home.

import { avatar } from '../widgets/avatar.js';
import { Composer } from './composer.js';
import { fullNameOf, kindOf, titleOf } from '../directory.js';
import { h, replace } from '../widgets/dom.js';
import { Home } from './home.js';
import { icon } from '../widgets/icons.js';
import { drawStatus } from './message.js';
import { MessageList } from './messages.js';
import { drawQuiet, inQuiet } from '../quiet.js';
import { renderMrkdwn } from '../blockkit/richtext.js';
import { routeTo } from '../route.js';

export class Place {
  constructor(app, container) {
    this.app = app;
    this.head = h('header', { class: 'place-head' });
    this.list = new MessageList(app, { inThread: false, label: 'Messages' });
    this.home = new Home(app);
    this.problem = h('p', { class: 'empty', role: 'alert', 'data-testid': 'place-problem' });
    this.status = h('div', { class: 'status-line' });
    this.join = h('div', { class: 'join', hidden: true });
    this.composer = new Composer(app, { label: 'Message', inThread: false, send: (order) => app.send(order, '') });
    this.alone = h('p', { class: 'alone', role: 'status', 'data-testid': 'not-connected', hidden: true });
    container.append(this.head, this.alone, this.problem, this.list.element, this.home.element, this.status, this.join, this.composer.element);
  }

  draw() {
    const { app } = this;
    const { people, channel } = app;
    this.drawHead();
    this.alone.hidden = app.connected;
    if (!app.connected) this.alone.textContent = `${people.name(people.bot?.id)} isn’t connected to this workspace: nobody answers until it is started.`;
    this.problem.textContent = app.problem;
    this.problem.hidden = !app.problem;
    this.home.element.hidden = !app.atHome || app.home === undefined;
    const shown = !app.atHome && Boolean(app.messages) && !app.problem;
    this.list.element.hidden = !shown;
    const outside = channel?.is_member === false;
    this.composer.element.hidden = app.atHome || Boolean(app.problem) || outside;
    this.join.hidden = !shown || !outside;
    if (app.atHome && app.home !== undefined) this.home.show(app.home);
    if (!shown) {
      this.status.replaceChildren();
      return;
    }
    const name = people.channelName(channel);
    this.list.show({
      place: `${people.me?.id}/${channel.id}`, channel, messages: app.messages, status: channel.is_im ? {} : app.status, newSince: app.newSince, intro: () => this.intro(channel), wanted: app.route.message,
    });
    this.drawJoin(channel);
    this.composer.show({ place: `${people.me?.id}/${channel.id}`, placeholder: channel.is_im ? `Message ${name}` : `Message #${name}` });
    this.drawStatus(channel);
  }

  // Everybody can read a public channel, but only members can write in the channel. drawJoin offers to join.
  drawJoin(channel) {
    const signature = `${channel.id}/${channel.name}`;
    if (this.join.hidden || signature === this.joinSignature) return;
    this.joinSignature = signature;
    this.join.replaceChildren(h('span', null, `You are looking at #${channel.name} without being in it.`),
      h('button', { type: 'button', class: 'button button-primary', 'data-testid': 'join', onclick: () => this.app.join(channel.id) }, 'Join the channel'));
  }

  // In a DM, the bot's status is above the composer. If the thread of the status is open, the thread shows the status.
  drawStatus(channel) {
    const { app } = this;
    const latest = channel.is_im ? Object.entries(app.status).filter(([ts]) => ts !== app.route.thread).pop() : null;
    const signature = JSON.stringify(latest ?? null);
    if (signature === this.statusSignature) return;
    this.statusSignature = signature;
    this.status.replaceChildren(...(latest ? [drawStatus(latest[1], app.people)] : []));
  }

  drawHead() {
    const { app } = this;
    const { people, channel } = app;
    const me = people.me?.id ?? '';
    const bot = people.bot;
    const withBot = Boolean(bot) && (app.atHome || channel?.user === bot.id || app.route.place === bot.id);
    const other = withBot ? bot : channel?.is_im ? people.user(channel.user) : null;
    const about = other && !other.is_bot ? [titleOf(other), kindOf(other), inQuiet(other, people.tz)].filter(Boolean).join(' · ') : '';
    const title = other ? [avatar(other, 'small'), h('span', { 'data-testid': 'place-name' }, fullNameOf(other)), drawQuiet(other, people)]
      : channel ? [icon(channel.is_private ? 'lock' : 'hash', 18), h('span', { 'data-testid': 'place-name' }, channel.name)] : [];
    const waiting = app.persons().some((user) => user.id !== me && app.unread.waiting(user.id));
    const dm = people.channels.find((one) => one.is_im && one.user === bot?.id);
    const tab = (place, text, here, testid) => h('a', { class: 'tab', href: routeTo({ user: me, place }), 'aria-current': here ? 'page' : null, 'data-testid': testid, 'data-key': testid }, text);
    const topic = channel && !withBot ? about || channel.topic?.value : '';
    const signature = JSON.stringify([me, channel?.id, channel?.name, channel?.num_members, topic, inQuiet(other, people.tz), withBot, app.route.place, waiting, dm?.id]);
    if (signature === this.headSignature) return;
    this.headSignature = signature;
    replace(this.head,
      h('a', { class: 'button button-icon back', href: routeTo({ user: me }), 'aria-label': 'Back to the list of channels', 'data-testid': 'back', 'data-key': 'back' }, icon('back', 20), waiting ? h('span', { class: 'dot' }) : null),
      h('h1', { class: 'place-title' }, title),
      topic ? h('div', { class: 'place-topic' }, renderMrkdwn(topic, people)) : null,
      withBot ? h('nav', { class: 'tabs', 'aria-label': fullNameOf(bot) }, tab(dm?.id ?? bot.id, 'Messages', !app.atHome, 'tab-messages'), tab('home', 'Home', app.atHome, 'tab-home')) : null,
      channel && !channel.is_im && channel.num_members ? h('span', { class: 'place-members', title: `${channel.num_members} members` }, icon('people', 16), String(channel.num_members)) : null,
      people.me ? h('a', { class: 'place-you', href: routeTo({ user: me }), 'aria-label': `You are ${fullNameOf(people.me)}. Change` }, avatar(people.me, 'small')) : null);
  }

  intro(channel) {
    const { people } = this.app;
    const other = channel.is_im ? people.user(channel.user) : null;
    if (other) {
      return h('div', { class: 'intro' }, avatar(other, 'huge'), h('h2', null, fullNameOf(other)),
        h('p', null, other.is_bot ? 'This is where you talk with the app alone. Just write: no mention is needed.' : `This is the start of your direct messages with ${fullNameOf(other)}.`));
    }
    return h('div', { class: 'intro' }, h('span', { class: 'intro-sign' }, icon(channel.is_private ? 'lock' : 'hash', 26)), h('h2', null, `#${channel.name}`),
      h('p', null, channel.is_private ? 'This private channel starts here. ' : 'This channel starts here. ', channel.topic?.value ? renderMrkdwn(channel.topic.value, people) : null));
  }

  focus() {
    if (!this.composer.element.hidden) this.composer.field.focus({ preventScroll: true });
    else this.home.inside.focus({ preventScroll: true });
  }
}
