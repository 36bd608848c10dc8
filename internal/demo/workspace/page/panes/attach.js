// The files of a message that a person is writing.

import { h } from '../widgets/dom.js';
import { icon } from '../widgets/icons.js';

const most = 2_500_000; // bytes of all files together, because one request carries all files

export class Attachments {
  // changed is called when the files have changed. failed gets a sentence when a file can't be added.
  constructor({ changed, failed, key }) {
    this.changed = changed;
    this.failed = failed;
    this.files = [];
    this.input = h('input', { type: 'file', multiple: true, hidden: true, 'data-testid': `${key}-files`, 'aria-label': 'Files to attach', onchange: () => this.add([...this.input.files]) });
    this.button = h('button', { type: 'button', class: 'button button-icon', 'aria-label': 'Attach files', title: 'Attach files', 'data-testid': `${key}-attach`, onclick: () => this.input.click() }, icon('clip', 18));
    this.list = h('div', { class: 'chips-row', hidden: true });
  }

  add(files) {
    this.input.value = '';
    if ([...this.files, ...files].reduce((sum, file) => sum + file.size, 0) > most) {
      this.failed('These files are too large for the local workspace: together they may have 2.5 MB.');
      return;
    }
    this.set([...this.files, ...files]);
  }

  set(files) {
    this.files = files;
    this.list.hidden = !files.length;
    this.list.replaceChildren(...files.map((file) => h('span', { class: 'chip' }, icon('file', 14), file.name,
      h('button', { type: 'button', 'aria-label': `Remove ${file.name}`, onclick: () => this.set(this.files.filter((other) => other !== file)) }, icon('close', 12)))));
    this.changed();
  }

  // encoded returns the files as the workspace expects them.
  encoded() {
    return Promise.all(this.files.map(async (file) => ({ name: file.name, base64: toBase64(new Uint8Array(await file.arrayBuffer())) })));
  }
}

function toBase64(bytes) {
  let text = '';
  for (let i = 0; i < bytes.length; i += 8192) text += String.fromCharCode(...bytes.subarray(i, i + 8192));
  return btoa(text);
}
