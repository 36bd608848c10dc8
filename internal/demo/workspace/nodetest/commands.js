// The app's handlers for the slash command and for both kinds of shortcuts.
'use strict';

const { report } = require('./report');

const plain = (text) => ({ type: 'plain_text', text });
const form = (title) => ({ type: 'modal', callback_id: 'shortcut', title: plain(title), blocks: [{ type: 'section', text: plain('Nothing to fill in') }] });

module.exports = (app) => {
  app.command('/countersign', async ({ ack, command, respond, client }) => {
    report('command', command);
    switch (command.text) {
      case 'quick':
        return ack('A quick answer');
      case 'everybody':
        return ack({ response_type: 'in_channel', text: 'For everybody' });
      case 'later':
        await ack();
        await respond('First');
        return respond({ text: 'Second', response_type: 'in_channel', blocks: [{ type: 'section', text: plain('Second, in a block') }] });
      case 'form':
        await ack();
        return client.views.open({ trigger_id: command.trigger_id, view: form('From a command') });
      default:
        return ack();
    }
  });
  app.shortcut('ask_countersign', async ({ ack, shortcut, client }) => {
    await ack();
    report('shortcut', shortcut);
    await client.views.open({ trigger_id: shortcut.trigger_id, view: form('From a shortcut') });
  });
  app.shortcut({ callback_id: 'hand_over', type: 'message_action' }, async ({ ack, shortcut, respond }) => {
    await ack();
    report('shortcut', shortcut);
    await respond(`Taken over: ${shortcut.message.text}`);
  });
};
