// The pane on the right: one thread.

import { Composer } from './composer.js';
import { h, replace } from '../widgets/dom.js';
import { icon } from '../widgets/icons.js';
import { MessageList } from './messages.js';
import { routeTo } from '../route.js';

export class Thread {
  constructor(app, container) {
    this.app = app;
    this.container = container;
    this.head = h('header', { class: 'thread-head' });
    this.problem = h('p', { class: 'empty', role: 'alert', 'data-testid': 'thread-problem' });
    this.list = new MessageList(app, { inThread: true, label: 'Thread' });
    this.composer = new Composer(app, { label: 'Reply', inThread: true, send: (order) => app.send(order, app.route.thread) });
    this.prompts = h('div', { class: 'prompts' });
    container.append(this.head, this.problem, this.list.element, this.prompts, this.composer.element);
  }

  draw() {
    const { app } = this;
    const { people, channel, route } = app;
    const open = Boolean(route.thread);
    this.container.hidden = !open;
    if (!open) return;
    const back = routeTo({ user: people.me?.id ?? '', place: route.place });
    const name = channel ? (channel.is_im ? '' : '#') + people.channelName(channel) : '';
    const signature = JSON.stringify([back, name]);
    if (signature !== this.headSignature) {
      this.headSignature = signature;
      replace(this.head,
        h('a', { class: 'button button-icon back', href: back, 'aria-label': 'Back to the channel', 'data-key': 'thread-back' }, icon('back', 20)),
        h('h2', { class: 'thread-title' }, 'Thread', h('span', { class: 'muted' }, name)),
        h('a', { class: 'button button-icon thread-close', href: back, 'aria-label': 'Close the thread', title: 'Close (Esc)', 'data-testid': 'thread-close', 'data-key': 'thread-close' }, icon('close', 18)));
    }
    this.problem.textContent = app.threadProblem;
    this.problem.hidden = !app.threadProblem;
    const shown = Boolean(app.thread) && !app.threadProblem && Boolean(channel);
    this.list.element.hidden = !shown;
    this.composer.element.hidden = !shown;
    if (!shown) return;
    const place = `${people.me?.id}/${channel.id}/${route.thread}`;
    this.list.show({ place, channel, messages: app.thread, status: app.status, wanted: app.route.message });
    this.drawPrompts();
    this.composer.show({ place, placeholder: 'Reply…' });
  }

  // The app may suggest prompts (assistant.threads.setSuggestedPrompts).
  drawPrompts() {
    const { prompts, title } = this.app.proposals;
    const signature = JSON.stringify([prompts, title]);
    if (signature === this.promptsSignature) return;
    this.promptsSignature = signature;
    this.prompts.replaceChildren(...(prompts.length ? [h('span', { class: 'muted' }, title || 'You could say'),
      ...prompts.map((one) => h('button', { type: 'button', class: 'button button-quiet', 'data-testid': 'prompt', title: one.message, onclick: () => this.composer.offer(one.message) }, one.title))] : []));
  }

  focus() {
    this.composer.field.focus({ preventScroll: true });
  }
}
