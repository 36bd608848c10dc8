// The introduction for new users. Its text comes from the workspace's seed (GET /people, "hint": {title, lines, user,
// channel}). A click on code in the text puts the code into the composer. A new user begins as user, in channel.

import { h } from '../widgets/dom.js';
import { icon } from '../widgets/icons.js';
import { renderMrkdwn } from '../blockkit/richtext.js';

// drawHint draws the panel. offer gets the clicked code.
export function drawHint(hint, people, { close, offer }) {
  const panel = h('section', { class: 'welcome', 'data-testid': 'hint', 'aria-label': hint.title },
    h('div', { class: 'welcome-head' }, h('h2', null, hint.title), h('button', { type: 'button', class: 'button button-icon', 'aria-label': 'Close the introduction', 'data-testid': 'hint-close', 'data-key': 'hint-close', onclick: close }, icon('close', 18))),
    h('ol', { class: 'welcome-lines' }, (hint.lines ?? []).map((line) => h('li', null, renderMrkdwn(line, people)))));
  for (const code of panel.querySelectorAll('code')) {
    code.replaceWith(h('button', { type: 'button', class: 'try', 'data-testid': 'try', title: 'Put this into the message field', 'data-key': `try/${code.textContent}`, onclick: () => offer(code.textContent) }, code.textContent));
  }
  return panel;
}
