// The app's Home tab.
'use strict';

const { report } = require('./report');

const plain = (text) => ({ type: 'plain_text', text });

module.exports = (app) => {
  app.event('app_home_opened', async ({ event, client }) => {
    if (event.tab !== 'home') return;
    report('app_home_opened', event);
    const { view } = await client.views.publish({
      user_id: event.user,
      view: {
        type: 'home',
        callback_id: 'home',
        blocks: [
          { type: 'header', text: plain(event.view ? 'Back again' : 'Welcome') },
          { type: 'actions', block_id: 'home', elements: [{ type: 'button', action_id: 'home_button', text: plain('Press'), value: '1' }] },
        ],
      },
    });
    report('published', view);
  });
  app.action('home_button', async ({ ack, body }) => {
    await ack();
    report('home button', { container: body.container, view: body.view.id, channel: body.channel });
  });
};
