// The bot's Home tab.

import { inWords } from '../api.js';
import { drawBlocks } from '../blockkit/blocks.js';
import { h, rememberFocus } from '../widgets/dom.js';
import { Form } from '../blockkit/form.js';

export class Home {
  constructor(app) {
    this.app = app;
    this.form = new Form();
    this.problems = new Map();
    this.inside = h('div', { class: 'home', 'data-testid': 'home', tabindex: '-1' });
    this.element = h('div', { class: 'scroller' }, this.inside);
  }

  show(view) {
    const { people } = this.app;
    const signature = JSON.stringify([people.me?.id, view?.hash, view?.blocks, this.app.namesVersion, [...this.problems]]);
    if (signature === this.signature) return;
    if (this.owner !== people.me?.id) {
      this.owner = people.me?.id;
      this.form = new Form();
      this.problems.clear();
    }
    this.signature = signature;
    this.view = view;
    const restore = rememberFocus(this.inside);
    this.inside.replaceChildren(...(view?.blocks?.length ? drawBlocks(view.blocks, this.surface())
      : [h('p', { class: 'empty' }, `${people.name(people.bot?.id)} hasn’t put anything here for you yet.`)]));
    restore();
  }

  surface() {
    const { app } = this;
    const where = { view_id: 'home' };
    const { view, form } = this;
    return {
      people: app.people, form, key: `home/${this.owner}`, heading: 'h2',
      act: (block, element, value) => app.act(where, block, element, value, { form, blocks: view.blocks }),
      suggest: (block, element, value) => app.suggest(where, block, element, value),
      report: (block, error) => {
        if (error) this.problems.set(block.block_id, inWords(error, app.people.name(app.people.bot?.id)));
        else if (!this.problems.delete(block.block_id)) return;
        this.show(this.view);
      },
      problem: (block) => this.problems.get(block.block_id),
    };
  }
}
