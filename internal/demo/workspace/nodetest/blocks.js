// A message with every interactive element that a message can have.
'use strict';

const plain = (text) => ({ type: 'plain_text', text });
const options = (...values) => values.map((value) => ({ text: plain(value), value }));

module.exports = () => [
  { type: 'section', block_id: 'intro', text: { type: 'mrkdwn', text: 'What is it about?' }, accessory: { type: 'button', action_id: 'open_ticket', text: plain('Open a ticket'), value: 'from-message', style: 'primary' } },
  {
    type: 'actions',
    block_id: 'choices',
    elements: [
      { type: 'static_select', action_id: 'priority', placeholder: plain('Priority'), options: options('low', 'high') },
      { type: 'multi_static_select', action_id: 'labels', placeholder: plain('Labels'), options: options('bug', 'wish', 'praise') },
      { type: 'external_select', action_id: 'product', placeholder: plain('Product'), min_query_length: 1 },
      { type: 'users_select', action_id: 'assignee', placeholder: plain('Assignee') },
      { type: 'conversations_select', action_id: 'where', placeholder: plain('Where') },
      { type: 'channels_select', action_id: 'channel', placeholder: plain('Channel') },
      { type: 'overflow', action_id: 'more', options: options('copy', 'close') },
      { type: 'datepicker', action_id: 'due' },
      { type: 'timepicker', action_id: 'hour' },
      { type: 'datetimepicker', action_id: 'moment' },
      { type: 'checkboxes', action_id: 'steps', options: options('one', 'two') },
      { type: 'radio_buttons', action_id: 'size', options: options('small', 'large') },
      { type: 'button', action_id: 'replace', text: plain('Replace') },
      { type: 'button', action_id: 'remove', text: plain('Remove'), style: 'danger' },
    ],
  },
  {
    type: 'context_actions',
    block_id: 'verdict',
    elements: [{ type: 'feedback_buttons', action_id: 'feedback', positive_button: { text: plain('Good'), value: 'good' }, negative_button: { text: plain('Bad'), value: 'bad' } }],
  },
];
