// The app's handlers for the interactive elements of messages.
'use strict';

const { report } = require('./report');

const chosen = ['priority', 'labels', 'product', 'assignee', 'where', 'channel', 'more', 'due', 'hour', 'moment', 'steps', 'size', 'feedback'];

module.exports = (app) => {
  for (const name of chosen) {
    app.action(name, async ({ ack, action, body }) => {
      await ack();
      report('action', { name, action, state: body.state?.values, container: body.container });
    });
  }
  app.action({ type: 'block_actions', action_id: 'replace' }, async ({ ack, respond, body }) => {
    await ack();
    report('replace', body);
    await respond({ text: 'Replaced', replace_original: true });
  });
  app.action('remove', async ({ ack, respond }) => {
    await ack();
    await respond({ delete_original: true });
  });
  app.options('product', async ({ ack, options }) => {
    report('options', options);
    const found = ['kettle', 'kayak', 'lamp'].filter((name) => name.startsWith(options.value));
    await ack({ options: found.map((name) => ({ text: { type: 'plain_text', text: name }, value: name })) });
  });
};
