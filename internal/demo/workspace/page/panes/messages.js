// A list of the messages of a channel, a DM or a thread.

import { inWords } from '../api.js';
import { h, say } from '../widgets/dom.js';
import { Form } from '../blockkit/form.js';
import { KeyedList } from '../widgets/keyed.js';
import { authorName, continues, drawMessage, drawStatus } from './message.js';
import { routeTo } from '../route.js';
import { dayKey, dayTitle, now } from '../time.js';

export class MessageList {
  // app is the page's App. With inThread, the list shows a thread.
  constructor(app, { inThread, label }) {
    this.app = app;
    this.inThread = inThread;
    this.list = h('div', { class: 'message-list', role: 'group', 'aria-label': label, 'data-testid': inThread ? 'thread-messages' : 'messages' });
    this.element = h('div', { class: 'scroller' }, this.list);
    this.keyed = new KeyedList(this.list);
    this.problems = new Map();
    // The choices that a person made in the menus of messages. The messages themselves don't contain these choices.
    this.forms = new Map();
    this.place = '';
    this.list.addEventListener('keydown', (event) => this.onKey(event));
    this.element.addEventListener('scroll', () => this.measure(), { passive: true });
    // If the list shows its end, it also shows its end after pictures load or the composer grows.
    new ResizeObserver(() => this.stay()).observe(this.list);
    new ResizeObserver(() => this.stay()).observe(this.element);
  }

  // end returns two scroll positions: the bottom of the list, and the position at which the list rests. The list rests
  // at the bottom. If the last message is taller than the screen, the list rests at the message's headline.
  end() {
    const { element, list } = this;
    const bottom = Math.max(0, element.scrollHeight - element.clientHeight);
    const last = [...list.querySelectorAll('.message')].pop();
    if (!last) return { bottom, rest: bottom };
    const top = last.getBoundingClientRect().top - element.getBoundingClientRect().top + element.scrollTop;
    return { bottom, rest: Math.min(bottom, Math.max(0, Math.floor(top) - 4)) };
  }

  // measure stores whether the list is at its end. below says that a tall last message is scrolled to its bottom.
  measure() {
    const { bottom, rest } = this.end();
    const here = this.element.scrollTop;
    const atBottom = bottom - here < 60;
    this.atEnd = atBottom || (here > rest - 60 && here < rest + 20);
    this.below = atBottom && here > rest + 20;
  }

  toEnd() {
    this.element.scrollTop = this.end().rest;
  }

  // stay keeps a list at its end. If a tall message is scrolled to its bottom, the list stays at the bottom.
  stay() {
    if (!this.atEnd) return;
    if (this.below) this.element.scrollTop = this.element.scrollHeight;
    else this.toEnd();
  }

  // show updates the list. newSince is the ts after which messages are new to the person, or '' if no message is new.
  show({ place, channel, messages, status, newSince = '', intro = null, wanted = '' }) {
    const entered = place !== this.place;
    if (entered) {
      this.place = place;
      this.problems.clear();
      this.forms.clear();
      this.keyed.update([]);
      this.atEnd = true;
      this.below = false;
    }
    this.current = { channel, messages, status, newSince, intro };
    const added = this.keyed.update(this.items());
    this.rove();
    if (wanted && wanted !== this.found) this.find(wanted);
    else if (entered) this.enter();
    else {
      this.announce(added);
      if (this.atEnd && this.brings(added)) this.toEnd();
      else this.stay();
    }
  }

  // brings returns whether the added elements contain a new message.
  brings(added) {
    return this.current.messages.some((message) => added.includes(keyOf(message)));
  }

  redraw() {
    if (this.current) this.keyed.update(this.items());
  }

  // find scrolls to the message of a link.
  find(ts) {
    const message = this.list.querySelector(`.message[data-ts="${CSS.escape(ts)}"]`);
    if (!message) return;
    this.found = ts;
    message.scrollIntoView({ block: 'center' });
    message.classList.add('message-found');
    this.measure();
  }

  enter() {
    const line = this.list.querySelector('.new-line');
    if (line) line.scrollIntoView({ block: 'center' });
    else this.toEnd();
    this.measure();
  }

  announce(added) {
    const { people } = this.app;
    for (const message of this.current.messages) {
      if (added.includes(keyOf(message)) && message.user !== people.me?.id) say(`${authorName(message, people)}: ${String(message.text ?? '').slice(0, 300)}`);
    }
  }

  items() {
    const { people } = this.app;
    const { channel, messages, status, newSince, intro } = this.current;
    const items = intro ? [{ key: 'intro', signature: this.place, make: intro }] : [];
    let previous = null;
    let day = '';
    let marked = false;
    messages.forEach((message, index) => {
      const seconds = Number(message.ts);
      const today = dayKey(seconds, people.tz);
      const parent = this.inThread && index === 0;
      if (today !== day && !this.inThread) {
        const title = dayTitle(seconds, now(), people.tz);
        items.push({ key: `day/${today}`, signature: title, make: () => h('div', { class: 'day', role: 'separator', 'aria-label': title }, h('span', null, title)) });
        previous = null;
      }
      day = today;
      if (newSince && !marked && Number(message.ts) > Number(newSince) && message.user !== people.me?.id && !message.is_ephemeral && index > 0) {
        marked = true;
        previous = null;
        items.push({ key: 'new', signature: newSince, make: () => h('div', { class: 'new-line', role: 'separator', 'aria-label': 'New messages' }, h('span', null, 'New')) });
      }
      // In a DM, the status of a thread is shown under the first message of the thread.
      const own = this.inThread ? null : status?.[message.ts] ?? null;
      const grouped = !parent && continues(message, previous);
      items.push({
        key: keyOf(message),
        signature: JSON.stringify([message, grouped, own, this.problemText(message), this.app.namesVersion]),
        make: () => h('div', null, this.draw(message, grouped, own, channel)),
      });
      previous = message;
      if (parent) {
        const count = messages.length - 1;
        const text = count === 1 ? '1 reply' : `${count} replies`;
        if (count > 0) items.push({ key: 'count', signature: text, make: () => h('div', { class: 'day day-thread' }, h('span', null, text)) });
        previous = null;
      }
    });
    const open = this.inThread ? status?.[messages[0]?.ts] : null;
    if (open) items.push({ key: 'status', signature: JSON.stringify(open), make: () => h('div', { class: 'status-line' }, drawStatus(open, people)) });
    return items;
  }

  draw(message, grouped, status, channel) {
    const { people } = this.app;
    const thread = message.thread_ts ?? message.ts;
    return drawMessage(message, {
      people, grouped, status, inThread: this.inThread, channel: channel?.id, surface: this.surface(message, channel),
      threadLink: this.inThread ? null : routeTo({ user: people.me?.id, place: this.app.route.place, thread }),
      shortcuts: this.app.shortcuts.filter((one) => one.type === 'message'),
      run: (callback) => this.app.shortcut({ callback_id: callback, channel: channel?.id, ts: message.ts }),
      stop: () => this.app.stop(channel?.id, thread),
      react: (name, remove) => this.app.react({ channel: channel?.id, ts: message.ts, name, ...(remove ? { remove: true } : {}) }),
    });
  }

  surface(message, channel) {
    const { people } = this.app;
    const where = { channel: channel?.id, ts: message.ts };
    return {
      people, form: this.form(message), key: `${channel?.id}/${message.ts}`,
      act: (block, element, value) => this.app.act(where, block, element, value, { form: this.form(message), blocks: message.blocks }),
      suggest: (block, element, value) => this.app.suggest(where, block, element, value),
      report: (block, error) => {
        if (error) this.problems.set(problemKey(message, block), inWords(error, people.name(people.bot?.id)));
        else if (!this.problems.delete(problemKey(message, block))) return;
        this.redraw();
      },
      problem: (block) => this.problems.get(problemKey(message, block)),
    };
  }

  form(message) {
    const key = keyOf(message);
    if (!this.forms.has(key)) this.forms.set(key, new Form());
    return this.forms.get(key);
  }

  problemText(message) {
    return (message.blocks ?? []).map((block) => this.problems.get(problemKey(message, block)) ?? '').join('');
  }

  // rove makes one message reachable with Tab. The arrow keys move the focus from this message.
  rove() {
    const all = this.articles();
    const stay = all.find((article) => article.tabIndex === 0 && article.isConnected);
    for (const article of all) article.tabIndex = -1;
    const one = all.includes(document.activeElement) ? document.activeElement : stay ?? all[all.length - 1];
    if (one) one.tabIndex = 0;
  }

  articles() {
    return [...this.list.querySelectorAll('.message')];
  }

  onKey(event) {
    if (!event.target.classList.contains('message')) return;
    const all = this.articles();
    const here = all.indexOf(event.target);
    const to = { ArrowUp: here - 1, ArrowDown: here + 1, Home: 0, End: all.length - 1 }[event.key];
    if (event.key === 'Enter' && !this.inThread) {
      const reply = event.target.querySelector('[data-testid="reply"]');
      if (reply) location.hash = reply.hash;
    }
    if (to === undefined || !all[to]) return;
    event.preventDefault();
    all[here].tabIndex = -1;
    all[to].tabIndex = 0;
    all[to].focus();
  }
}

function keyOf(message) {
  return `${message.is_ephemeral ? 'only-you/' : ''}${message.ts}`;
}

function problemKey(message, block) {
  return `${keyOf(message)}/${block.block_id}`;
}
