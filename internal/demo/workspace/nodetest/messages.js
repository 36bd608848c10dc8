// The app's handlers for events of messages, mentions, reactions and channels.
'use strict';

const { report } = require('./report');
const elements = require('./blocks');

module.exports = (app) => {
  app.message('hello desk', async ({ message, context, say }) => {
    report('message', { message, context: { botId: context.botId, botUserId: context.botUserId, teamId: context.teamId } });
    const sent = await say({ text: 'Hello', blocks: elements(), thread_ts: message.thread_ts ?? message.ts });
    report('said', sent);
  });
  app.message(/^order (\d+)$/, async ({ context, say }) => {
    await say(`Order ${context.matches[1]} it is.`);
  });
  app.message('whisper', async ({ message, client }) => {
    report('whispered', await client.chat.postEphemeral({ channel: message.channel, user: message.user, text: 'Only for you', blocks: elements() }));
  });
  app.event('app_mention', async ({ event, say, body }) => {
    report('app_mention', { event, body: { ...body, event: undefined } });
    await say({ text: `<@${event.user}> asked`, thread_ts: event.thread_ts ?? event.ts });
  });
  for (const name of ['reaction_added', 'reaction_removed', 'member_joined_channel', 'member_left_channel', 'user_change', 'subteam_updated', 'channel_archive', 'channel_unarchive']) {
    app.event(name, async ({ event }) => report(name, event));
  }
  app.event('file_shared', async ({ event, context }) => {
    if (event.user_id !== context.botUserId) report('file_shared', event);
  });
  app.event('message', async ({ event }) => {
    if (event.subtype === 'message_changed' || event.subtype === 'message_deleted' || event.subtype === 'file_share') report(event.subtype, event);
  });
};
