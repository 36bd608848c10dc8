// The dialog for an element's confirm object, before the action is sent.

import { h, uid } from '../widgets/dom.js';
import { renderText } from './richtext.js';

// askConfirm returns whether the person confirmed. Escape and a click outside mean no.
export function askConfirm(confirm, people) {
  if (!confirm) return Promise.resolve(true);
  return new Promise((resolve) => {
    const before = document.activeElement;
    const titleId = uid('confirm');
    const danger = confirm.style === 'danger';
    const deny = h('button', { type: 'button', class: 'button', 'data-testid': 'confirm-deny', onclick: () => dialog.close('no') }, renderText(confirm.deny ?? { type: 'plain_text', text: 'Cancel' }, people));
    const accept = h('button', { type: 'button', class: `button ${danger ? 'button-danger-solid' : 'button-primary'}`, 'data-testid': 'confirm-accept', onclick: () => dialog.close('yes') },
      renderText(confirm.confirm ?? { type: 'plain_text', text: 'Yes' }, people));
    const dialog = h('dialog', { class: 'confirm', 'aria-labelledby': titleId, 'data-testid': 'confirm' },
      h('h2', { id: titleId, class: 'confirm-title' }, renderText(confirm.title ?? { type: 'plain_text', text: 'Are you sure?' }, people)),
      h('div', { class: 'confirm-text' }, renderText(confirm.text, people)),
      h('div', { class: 'dialog-buttons' }, deny, accept));
    dialog.addEventListener('click', (event) => {
      if (event.target === dialog) dialog.close('no');
    });
    dialog.addEventListener('close', () => {
      dialog.remove();
      if (before?.isConnected) before.focus();
      resolve(dialog.returnValue === 'yes');
    });
    document.body.append(dialog);
    dialog.showModal();
    // Before a dangerous action, focus the button that denies, so that the Enter key does not trigger the action.
    (danger ? deny : accept).focus();
  });
}
