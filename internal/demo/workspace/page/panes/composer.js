// The field for messages and slash commands.

import { inWords } from '../api.js';
import { Attachments } from './attach.js';
import { createCompletion } from './completion.js';
import { h } from '../widgets/dom.js';
import { icon } from '../widgets/icons.js';
import { readOrder } from './order.js';
import { createMenu } from '../widgets/menu.js';

export class Composer {
  // send gets {text, files} or {command, text} and returns a promise.
  constructor(app, { label, inThread, send }) {
    this.app = app;
    this.inThread = inThread;
    this.send = send;
    this.drafts = new Map();
    this.place = '';
    this.field = h('textarea', {
      class: 'composer-field', rows: '1', 'aria-label': label, 'data-testid': inThread ? 'thread-composer' : 'composer', 'data-key': 'composer',
      oninput: () => this.changed(), onkeydown: (event) => this.onKey(event),
    });
    this.shortcuts = h('span', { class: 'composer-shortcuts' });
    this.button = h('button', { type: 'submit', class: 'composer-send', 'aria-label': 'Send', title: 'Send (Enter)', 'data-testid': inThread ? 'thread-send' : 'send', disabled: true }, icon('send', 18));
    this.error = h('p', { class: 'composer-error', role: 'alert', 'data-testid': 'composer-error', hidden: true });
    this.attachments = new Attachments({ key: inThread ? 'thread' : 'composer', changed: () => this.changed(), failed: (sentence) => this.fail(sentence) });
    const mention = h('button', { type: 'button', class: 'button button-icon', 'aria-label': 'Mention somebody', title: 'Mention somebody', onclick: () => this.insert('@') }, icon('at', 18));
    this.element = h('form', { class: 'composer', onsubmit: (event) => { event.preventDefault(); this.submit(); } },
      this.error,
      h('div', { class: 'composer-box' }, this.field, this.attachments.list,
        h('div', { class: 'composer-bar' }, this.shortcuts, mention, this.attachments.button, this.attachments.input, h('span', { class: 'composer-hint' }, h('kbd', null, 'Shift'), ' + ', h('kbd', null, 'Enter'), ' for a new line'), this.button)));
    this.completion = createCompletion(this.field, () => this.app.people, { commands: () => (inThread ? [] : this.app.commands) });
    this.element.append(this.completion.element);
  }

  // show sets the channel or thread. Each keeps its own draft.
  show({ place, placeholder }) {
    this.field.placeholder = placeholder;
    this.drawShortcuts();
    this.field.setAttribute('aria-label', placeholder);
    if (place === this.place) return;
    this.drafts.set(this.place, this.field.value);
    this.place = place;
    this.setText(this.drafts.get(place) ?? '');
    this.attachments.set([]);
    this.fail('');
  }

  drawShortcuts() {
    const offered = this.inThread ? [] : this.app.shortcuts.filter((one) => one.type === 'global');
    const signature = JSON.stringify(offered);
    if (signature === this.shortcutsSignature) return;
    this.shortcutsSignature = signature;
    this.shortcuts.replaceChildren(...(offered.length ? [createMenu({
      label: 'Shortcuts', trigger: icon('plus', 18), attributes: { 'data-testid': 'shortcuts', title: 'Shortcuts' },
      items: offered.map((one) => ({ text: one.name, value: one.callback_id })), onchoose: (item) => this.app.shortcut({ callback_id: item.value }),
    })] : []));
  }

  setText(text) {
    this.field.value = text;
    this.changed();
  }

  // offer puts a proposed text into the field.
  offer(text) {
    this.setText(text);
    this.field.focus();
    this.field.setSelectionRange(text.length, text.length);
    this.completion.close();
  }

  insert(sign) {
    const { selectionStart: at, value } = this.field;
    const gap = at > 0 && !/\s/.test(value[at - 1]) ? ' ' : '';
    this.field.focus();
    this.field.setRangeText(gap + sign, at, this.field.selectionEnd, 'end');
    this.changed();
    this.completion.update();
  }

  changed() {
    this.button.disabled = !this.field.value.trim() && !this.attachments.files.length;
    this.field.style.height = 'auto';
    if (this.field.value) this.field.style.height = `${Math.min(this.field.scrollHeight, 240)}px`;
    else this.field.style.height = '';
  }

  fail(sentence) {
    this.error.textContent = sentence;
    this.error.hidden = !sentence;
  }

  onKey(event) {
    if (event.isComposing || this.completion.onKey(event)) return;
    if (event.key !== 'Enter' || event.shiftKey) return;
    event.preventDefault();
    this.submit();
  }

  async submit() {
    const text = this.field.value;
    const { files } = this.attachments;
    if (!text.trim() && !files.length) return;
    if (this.sending) { // send this message when the previous message has arrived
      this.again = true;
      return;
    }
    const order = readOrder(text, { commands: this.app.commands, people: this.app.people, inThread: this.inThread });
    if (order.problem || (order.command && files.length)) {
      this.fail(order.problem || 'A slash command takes no files.');
      return;
    }
    const { place } = this;
    this.sending = true;
    this.fail('');
    const encoded = files.length ? await this.attachments.encoded() : null;
    this.setText('');
    this.attachments.set([]);
    try {
      await this.send(encoded ? { ...order, files: encoded } : order);
    } catch (error) {
      // Restore the typed text, even if the person has opened another place meanwhile.
      if (this.place === place && !this.field.value) {
        this.setText(text);
        this.attachments.set(files);
      } else this.drafts.set(place, text);
      if (this.place === place) this.fail(inWords(error, this.app.people.name(this.app.people.bot?.id)));
    } finally {
      this.sending = false;
      const { again } = this;
      this.again = false;
      if (again && this.place === place) this.submit();
    }
  }
}
