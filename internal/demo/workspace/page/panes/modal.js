// The person's stack of modals. The top one is shown.

import { inWords } from '../api.js';
import { plainOf } from '../blockkit/action.js';
import { drawBlocks } from '../blockkit/blocks.js';
import { h, rememberFocus, say, uid } from '../widgets/dom.js';
import { Form } from '../blockkit/form.js';
import { icon } from '../widgets/icons.js';
import { renderText } from '../blockkit/richtext.js';

export class Modals {
  constructor(app) {
    this.app = app;
    this.forms = new Map();
    this.problems = new Map();
    this.titleId = uid('modal');
    this.dialog = h('dialog', { class: 'modal', 'aria-labelledby': this.titleId, 'data-testid': 'modal' });
    this.dialog.addEventListener('cancel', (event) => {
      event.preventDefault();
      this.close(false);
    });
    document.body.append(this.dialog);
  }

  get view() {
    return this.views?.[this.views.length - 1];
  }

  // show updates the dialog to the person's stack.
  show(views) {
    this.views = views;
    for (const id of this.forms.keys()) if (!views.some((view) => view.id === id)) this.forms.delete(id);
    const { view } = this;
    if (!view) {
      this.signature = '';
      this.problems.clear();
      if (this.dialog.open) this.dialog.close();
      return;
    }
    const signature = JSON.stringify([view.id, view.hash, view.blocks, view.title, view.submit, view.close, view.errors]);
    const same = signature === this.signature && this.dialog.open;
    // While a list in the dialog is open, a changed name of a person does not redraw the dialog.
    if (same && (this.names === this.app.namesVersion || this.dialog.querySelector(':popover-open'))) return;
    this.names = this.app.namesVersion;
    const other = this.shown !== view.id;
    this.signature = signature;
    this.shown = view.id;
    if (other) this.problem = ''; // the problem was about the previous view
    if (!this.forms.has(view.id)) this.forms.set(view.id, new Form((block) => this.mended(block)));
    const form = this.forms.get(view.id);
    if (view.errors && JSON.stringify(view.errors) !== form.told) this.tell(form, view.errors);
    this.draw(other);
  }

  tell(form, errors) {
    form.told = JSON.stringify(errors);
    form.errors.clear();
    for (const [block, text] of Object.entries(errors ?? {})) form.errors.set(block, text);
  }

  // mended removes a field's error after a change.
  mended(block) {
    const input = this.dialog.querySelector(`.input-invalid[data-block-id="${CSS.escape(block)}"]`);
    if (!input) return;
    input.classList.remove('input-invalid');
    input.querySelector('.field-error').hidden = true;
    for (const field of input.querySelectorAll('[aria-invalid]')) field.removeAttribute('aria-invalid');
  }

  draw(entered) {
    const { view, dialog } = this;
    const form = this.forms.get(view.id);
    const restore = rememberFocus(dialog);
    const scroll = dialog.querySelector('.modal-body')?.scrollTop ?? 0;
    // A loading view has nothing to focus. When the next view comes, its fields get the focus.
    const waiting = document.activeElement?.classList.contains('modal-title');
    const submit = view.submit ? h('button', { type: 'submit', class: 'button button-primary', 'data-testid': 'modal-submit', disabled: this.sending }, renderText(view.submit, this.app.people)) : null;
    const content = h('form', { class: 'modal-form', novalidate: true, onsubmit: (event) => { event.preventDefault(); this.submit(); } },
      h('header', { class: 'modal-head' }, h('h2', { id: this.titleId, class: 'modal-title', tabindex: '-1', 'data-testid': 'modal-title' }, renderText(view.title, this.app.people)),
        h('button', { type: 'button', class: 'button button-icon', 'aria-label': 'Close', 'data-testid': 'modal-x', onclick: () => this.close(true) }, icon('close', 20))),
      h('div', { class: 'modal-body' }, drawBlocks(view.blocks, this.surface(view, form)),
        h('p', { class: 'action-error', role: 'alert', 'data-testid': 'modal-error', hidden: !this.problem }, this.problem)),
      h('footer', { class: 'modal-foot' }, h('button', { type: 'button', class: 'button', 'data-testid': 'modal-close', onclick: () => this.close(false) }, view.close ? renderText(view.close, this.app.people) : 'Close'), submit));
    content.addEventListener('keydown', (event) => {
      if (event.key === 'Enter' && (event.ctrlKey || event.metaKey) && submit) content.requestSubmit();
    });
    dialog.dataset.viewId = view.id;
    dialog.dataset.callbackId = view.callback_id ?? '';
    dialog.dataset.depth = String(this.views.length);
    dialog.replaceChildren(content);
    if (!dialog.open) dialog.showModal();
    if (entered || waiting) this.enter();
    else {
      dialog.querySelector('.modal-body').scrollTop = scroll;
      restore();
    }
  }

  // enter focuses the first field, as Slack does. Without a field, it focuses the title.
  enter() {
    const { dialog } = this;
    const marked = this.view.blocks?.flatMap((block) => [block.element, block.accessory, ...(block.elements ?? [])]).find((element) => element?.focus_on_load);
    const first = (marked && dialog.querySelector(`[data-action-id="${CSS.escape(marked.action_id ?? '')}"]`))
      ?? dialog.querySelector('.modal-body :is(input, textarea):not([type="radio"], [type="checkbox"], .select-input)') ?? dialog.querySelector('.modal-title');
    first.focus({ preventScroll: true });
    say(plainOf(this.view.title));
  }

  surface(view, form) {
    const { app } = this;
    const where = { view_id: view.id };
    return {
      people: app.people, form, key: view.id,
      act: (block, element, value) => app.act(where, block, element, value, { form, blocks: view.blocks }),
      suggest: (block, element, value) => app.suggest(where, block, element, value),
      report: (block, error) => {
        if (error) this.problems.set(block.block_id, inWords(error, app.people.name(app.people.bot?.id)));
        else if (!this.problems.delete(block.block_id)) return;
        if (this.view?.id === view.id) this.draw(false);
      },
      problem: (block) => this.problems.get(block.block_id),
    };
  }

  async submit() {
    const { view } = this;
    if (!view?.submit || this.sending) return;
    const form = this.forms.get(view.id);
    this.problem = '';
    if (!form.check(view.blocks)) {
      this.draw(false);
      this.toFirstError();
      return;
    }
    this.busy(true);
    try {
      await this.app.submit(view.id, form.collect(view.blocks));
      form.told = '';
    } catch (error) {
      if (error.code === 'view_errors') this.tell(form, error.errors);
      else this.problem = `${inWords(error, this.app.people.name(this.app.people.bot?.id))} What you wrote is still here.`;
    }
    this.busy(false);
    await this.app.refresh('views');
    if (this.view?.id !== view.id) return;
    this.draw(false);
    this.toFirstError();
  }

  busy(sending) {
    this.sending = sending;
    const button = this.dialog.querySelector('[data-testid="modal-submit"]');
    if (!button) return;
    button.disabled = sending;
    if (sending) button.setAttribute('aria-busy', 'true');
    else button.removeAttribute('aria-busy');
  }

  toFirstError() {
    const input = this.dialog.querySelector('.input-invalid');
    const control = input?.querySelector('input, textarea');
    input?.scrollIntoView({ block: 'nearest' });
    control?.focus({ preventScroll: true });
  }

  // close closes the top view. With all, it closes the whole stack.
  async close(all) {
    const { view } = this;
    if (!view) return;
    try {
      await this.app.closeView(view.id, all);
    } catch (error) {
      this.problem = inWords(error, this.app.people.name(this.app.people.bot?.id));
      this.draw(false);
    }
  }
}
