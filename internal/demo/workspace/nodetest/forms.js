// Modals: the app opens, pushes and updates them, and answers a submission in every possible way.
'use strict';

const { report } = require('./report');

const plain = (text) => ({ type: 'plain_text', text });

function ticket(extra) {
  return {
    type: 'modal',
    callback_id: 'ticket',
    private_metadata: 'ticket-1',
    notify_on_close: true,
    title: plain('Ticket'),
    submit: plain('Send'),
    close: plain('Cancel'),
    blocks: [
      { type: 'input', block_id: 'subject', label: plain('Subject'), element: { type: 'plain_text_input', action_id: 'text', max_length: 40 } },
      { type: 'input', block_id: 'amount', optional: true, label: plain('Amount'), element: { type: 'number_input', action_id: 'number', is_decimal_allowed: true } },
      { type: 'input', block_id: 'pick', optional: true, label: plain('Product'), element: { type: 'external_select', action_id: 'product', min_query_length: 0 } },
      { type: 'actions', block_id: 'go', elements: [{ type: 'button', action_id: 'push', text: plain('Details') }, { type: 'button', action_id: 'refresh', text: plain('Refresh') }] },
    ],
    ...extra,
  };
}

module.exports = (app) => {
  app.action('open_ticket', async ({ ack, body, action, client }) => {
    await ack();
    report('action', { name: 'open_ticket', action, container: body.container });
    const { view } = await client.views.open({ trigger_id: body.trigger_id, view: ticket() });
    report('opened', view);
    try {
      await client.views.open({ trigger_id: body.trigger_id, view: ticket() });
    } catch (error) {
      report('second open', { code: error.code, error: error.data.error });
    }
  });
  app.action('push', async ({ ack, body, client }) => {
    await ack();
    const { view } = await client.views.push({ trigger_id: body.trigger_id, view: ticket({ callback_id: 'details', title: plain('Details') }) });
    report('pushed', view);
  });
  app.action('refresh', async ({ ack, body, client }) => {
    await ack();
    const fresh = ticket({ title: plain('Refreshed') });
    const { view } = await client.views.update({ view_id: body.view.id, hash: body.view.hash, view: fresh });
    report('refreshed', view);
    try {
      await client.views.update({ view_id: body.view.id, hash: body.view.hash, view: fresh });
    } catch (error) {
      report('second update', { code: error.code, error: error.data.error });
    }
  });
  app.view('ticket', async ({ ack, view, body }) => {
    const subject = view.state.values.subject.text.value;
    report('submitted', { view, user: body.user, type: body.type, response_urls: body.response_urls });
    switch (subject) {
      case 'errors':
        return ack({ response_action: 'errors', errors: { subject: 'Say more' } });
      case 'update':
        return ack({ response_action: 'update', view: ticket({ title: plain('Updated') }) });
      case 'push':
        return ack({ response_action: 'push', view: ticket({ callback_id: 'details', title: plain('Pushed') }) });
      case 'clear':
        return ack({ response_action: 'clear' });
      default:
        return ack();
    }
  });
  app.view('details', async ({ ack, view }) => {
    await ack();
    report('submitted', { view });
  });
  app.view({ callback_id: /^(ticket|details)$/, type: 'view_closed' }, async ({ ack, view, body }) => {
    await ack();
    report('closed', { view, is_cleared: body.is_cleared });
  });
};
