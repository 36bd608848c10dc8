// The page's state. The App reads the state from the workspace, and the panes draw it after each load.

import { api, inWords } from './api.js';
import { avatar, learnColours } from './widgets/avatar.js';
import { Directory, fullNameOf, nameOf, titleOf } from './directory.js';
import { quietUntil } from './quiet.js';
import { parseRoute, routeTo } from './route.js';
import { now } from './time.js';
import { dropToast, toast } from './panes/toast.js';
import { concerned, Unread } from './unread.js';

export class App {
  // draw is called when the page may have to be redrawn.
  constructor({ draw }) {
    this.draw = draw;
    this.route = parseRoute('');
    this.people = new Directory();
    this.team = null;
    this.commands = [];
    this.shortcuts = [];
    this.hint = null;
    this.connected = true;
    this.unread = new Unread();
    this.lastPlaces = new Map();
    this.namesVersion = 0;
    this.quiet = '';
    this.views = [];
    this.dirty = new Set();
    this.working = Promise.resolve();
    this.clearPlace();
  }

  clearPlace() {
    this.channel = null;
    this.messages = null;
    this.status = {};
    this.newSince = '';
    this.home = undefined;
    this.problem = '';
    this.clearThread();
  }

  clearThread() {
    this.thread = null;
    this.proposals = { title: '', prompts: [] };
    this.threadProblem = '';
  }

  // persons are the people as whom one can use the page: no bots, no deactivated accounts.
  persons() {
    return this.people.everyone.filter((user) => !user.is_bot && !user.deleted);
  }

  place() {
    return this.channel;
  }

  get atHome() {
    return this.route.place === 'home';
  }

  // doorOf returns the target of a click on a person: a place with an unread message, otherwise the person's last
  // place.
  doorOf(user) {
    return routeTo({ user, ...(this.unread.door(user) ?? { place: this.lastPlaces.get(user) ?? '' }) });
  }

  // go opens an address. With narrow, the list of channels is a screen of its own.
  async go(hash, { narrow }) {
    const before = this.route;
    const wanted = parseRoute(hash);
    if (!this.people.everyone.length) await this.refresh('people');
    if (!this.people.user(wanted.user)) wanted.user = this.people.user(this.hint?.user) ? this.hint.user : this.persons()[0]?.id ?? '';
    this.route = wanted;
    const switched = before.user !== wanted.user;
    if (switched) {
      dropToast(before.user);
      dropToast(wanted.user);
      this.views = [];
      this.look(this.people.user(wanted.user), []);
    }
    if (switched || before.place !== wanted.place) this.clearPlace();
    if (before.thread !== wanted.thread) this.clearThread();
    if (switched) await this.refresh('channels', 'views', 'others');
    if (this.route !== wanted) return;
    if (!wanted.place && !narrow) {
      const first = this.lastPlaces.get(wanted.user) ?? this.unread.door(wanted.user)?.place ?? this.people.channel(this.hint?.channel)?.id ?? this.people.channels.find((channel) => channel.is_channel)?.id ?? this.people.channels[0]?.id;
      if (first) {
        location.replace(routeTo({ user: wanted.user, place: first }));
        return;
      }
    }
    if (wanted.place) {
      this.lastPlaces.set(wanted.user, wanted.place);
      const known = this.people.channel(wanted.place);
      if (!this.messages && known?.unread_count > 0 && Number(known.last_read) > 0) this.newSince = known.last_read;
    }
    this.draw();
    await this.refresh('messages', 'thread', 'home');
  }

  look(me, channels) {
    const { everyone, bot, groups } = this.people;
    const names = JSON.stringify(channels.map((channel) => [channel.id, channel.name]));
    if (names !== this.names || me?.id !== this.people.me?.id) this.namesVersion += 1;
    this.names = names;
    this.people = new Directory({ people: everyone, bot, groups, channels, me, team: this.team });
  }

  // refresh reads parts of the state from the workspace: people, channels, others, messages, thread, views, home. Calls
  // during a refresh are merged.
  refresh(...parts) {
    for (const part of parts) this.dirty.add(part);
    this.queued ??= this.working.then(() => {
      this.queued = null;
      const todo = this.dirty;
      this.dirty = new Set();
      this.working = this.load(todo);
      return this.working;
    });
    return this.queued;
  }

  async load(parts) {
    const { route } = this;
    const { user, place, thread } = route;
    // Ignore answers that arrive after the person has opened another place.
    const read = async (part, ask, take, failed = () => {}) => {
      if (!parts.has(part)) return;
      try {
        const answer = await ask();
        if (this.route === route) take(answer);
      } catch (error) {
        if (!error.code) throw error;
        if (this.route === route) failed(inWords(error, this.people.name(this.people.bot?.id)), error);
      }
    };
    const mark = document.visibilityState === 'visible';
    const inPlace = place && place !== 'home';
    const stop = (sentence) => { this.problem = sentence; };
    await read('people', api.people, (answer) => this.meet(answer), stop);
    await Promise.all([
      user && read('channels', () => api.channels(user), (answer) => {
        this.look(this.people.user(user), answer.channels);
        this.unread.set(user, answer.channels);
      }, stop),
      user && read('views', () => api.views(user), (answer) => { this.views = answer.views ?? []; }),
      inPlace && read('messages', () => api.messages(user, place, { mark }), (answer) => {
        this.channel = answer.channel;
        this.messages = answer.messages;
        this.status = answer.status ?? {};
        this.problem = '';
      }, stop),
      inPlace && thread && read('thread', () => api.messages(user, place, { thread, mark }), (answer) => {
        this.thread = answer.messages;
        this.proposals = { title: answer.prompts_title ?? '', prompts: answer.prompts ?? [] };
        this.status = { ...this.status, ...answer.status };
        this.threadProblem = '';
        if (mark && this.unread.sawThread(user, thread)) dropToast(user);
      }, (sentence) => { this.threadProblem = sentence; }),
      user && place === 'home' && read('home', () => api.home(user, this.home !== undefined), (answer) => { this.home = answer.view ?? null; }, stop),
      read('others', () => this.readOthers(user), () => {}),
    ]);
    this.draw();
  }

  meet(answer) {
    this.team = answer.team;
    this.connected = answer.connected !== false;
    learnColours(answer.people);
    this.commands = answer.commands ?? [];
    this.shortcuts = answer.shortcuts ?? [];
    this.hint = answer.hint ?? null;
    this.people = new Directory({ people: answer.people, bot: answer.bot, groups: answer.groups ?? [], channels: this.people.channels, team: answer.team, me: answer.people.find((one) => one.id === this.route.user) ?? null });
    const everyone = JSON.stringify([answer.people, answer.bot, answer.groups]);
    if (everyone !== this.everyone) this.namesVersion += 1;
    this.everyone = everyone;
  }

  async readOthers(user) {
    await Promise.all(this.persons().filter((one) => one.id !== user).map(async (one) => {
      const answer = await api.channels(one.id).catch(() => null);
      if (!answer) return;
      const [news] = this.unread.set(one.id, answer.channels);
      if (news) this.nudge(one, news.channel);
    }));
  }

  // nudge shows that a message waits for another person. In the demo, this person often has to do the next step.
  nudge(user, channel) {
    if (quietUntil(user, now())) return;
    const title = titleOf(user);
    const other = channel.is_im ? this.people.name(channel.user) : '';
    toast({
      key: user.id, face: avatar(user, 'medium'), text: [nameOf(user), title].filter(Boolean).join(' · '),
      detail: channel.is_im ? `has a new message from ${other || channel.name}` : `was mentioned in #${channel.name}`,
      action: `Look as ${fullNameOf(user).split(/\s+/)[0]}`, href: routeTo({ user: user.id, place: channel.id }),
    });
  }

  // hearReply counts a reply in a thread as unread for the people whom the reply concerns. In a DM, the workspace
  // already counts every message.
  async hearReply({ channel, thread_ts: thread, ts }) {
    const { route } = this;
    const answer = await api.messages(route.user, channel, { thread }).catch(() => null);
    if (!answer || answer.channel.is_im) return;
    for (const id of concerned(answer.messages, ts)) {
      const user = this.people.user(id);
      const me = id === this.route.user;
      // A person who looks at the channel sees the reply, or the new number of replies.
      const seen = me && channel === this.channel?.id && document.visibilityState === 'visible';
      if (!user || user.is_bot || user.deleted || seen) continue;
      this.unread.reply(id, { place: channel, thread, ts });
      if (quietUntil(user, now())) continue;
      toast({
        key: id, face: avatar(user, 'medium'), text: me ? 'New reply in your thread' : [nameOf(user), titleOf(user)].filter(Boolean).join(' · '),
        detail: me ? `#${answer.channel.name}` : `has a new reply in #${answer.channel.name}`,
        action: me ? 'Open' : `Look as ${fullNameOf(user).split(/\s+/)[0]}`, href: routeTo({ user: id, place: channel, thread }),
      });
    }
    this.draw();
  }

  async send(order, thread) {
    const { user } = this.route;
    const channel = this.channel?.id ?? this.route.place;
    if (order.command) await api.command(user, { channel, command: order.command, text: order.text });
    else await api.send(user, { channel, text: order.text, ...(order.files ? { files: order.files } : {}), ...(thread ? { thread_ts: thread } : {}) });
    this.newSince = '';
    await this.refresh('messages', 'thread', 'channels');
  }

  // act first sends the unsent input of the form, and then a click or a choice. where is the message or the view.
  async act(where, block, element, value, { form, blocks }) {
    const { user } = this.route;
    const action = (one) => ({ ...where, action_id: one.element.action_id, block_id: one.block.block_id, value: one.value });
    try {
      for (const entry of form.unsent(blocks)) await api.act(user, action(entry));
      await api.act(user, action({ block, element, value }));
    } catch (error) {
      if (error.code === 'app_did_not_respond') this.refresh('people');
      throw error;
    } finally {
      this.refresh('messages', 'thread', 'views');
    }
  }

  // tick detects quiet times that have begun or ended, because the workspace sends no event about this.
  tick() {
    const quiet = this.people.everyone.filter((user) => quietUntil(user, now())).map((user) => user.id).join();
    if (quiet === this.quiet) return;
    this.quiet = quiet;
    this.namesVersion += 1;
    this.refresh('people');
  }

  snooze(until) {
    return this.attempt(api.snooze(this.route.user, until), 'people');
  }

  // attempt runs an action, and shows an error in a note. It is for actions that have no place for an error on the
  // page.
  async attempt(work, ...parts) {
    try {
      await work;
    } catch (error) {
      toast({ key: 'error', text: inWords(error, this.people.name(this.people.bot?.id)) });
    }
    await this.refresh(...parts);
  }

  react(reaction) {
    return this.attempt(api.react(this.route.user, reaction), 'messages', 'thread');
  }

  // stop does what Slack's own button does: it ends the app's work in a thread.
  stop(channel, thread) {
    return this.attempt(api.stop(this.route.user, { channel, thread_ts: thread }), 'messages', 'thread');
  }

  join(channel) {
    return this.attempt(api.join(this.route.user, channel), 'channels', 'messages');
  }

  shortcut(shortcut) {
    return this.attempt(api.shortcut(this.route.user, shortcut), 'views', 'messages');
  }

  suggest(where, block, element, value) {
    return api.options(this.route.user, { ...where, action_id: element.action_id, block_id: block.block_id, value });
  }

  submit(view, values) {
    return api.submit(this.route.user, view, values);
  }

  async closeView(view, all) {
    try {
      await api.close(this.route.user, view, all);
    } finally {
      await this.refresh('views');
    }
  }
}
