// The app as an agent: threads in its own direct messages, with status, title, prompts and streamed answers.
'use strict';

const { Assistant } = require('@slack/bolt');
const { report } = require('./report');

module.exports = (app) => {
  app.event('agent_session_stopped', async ({ event }) => report('agent_session_stopped', event));
  app.assistant(
    new Assistant({
      threadStarted: async ({ event, say, setSuggestedPrompts, saveThreadContext }) => {
        report('assistant_thread_started', event);
        await say('What can I do for you?');
        await saveThreadContext();
        await setSuggestedPrompts({ title: 'Try one of these', prompts: [{ title: 'A refund', message: 'Refund order 7' }] });
      },
      threadContextChanged: async ({ event, saveThreadContext }) => {
        await saveThreadContext();
        report('assistant_thread_context_changed', event);
      },
      userMessage: async ({ message, getThreadContext, setTitle, setStatus, sayStream }) => {
        await setTitle(message.text);
        await setStatus({ status: 'is thinking…', loading_messages: ['Looking', 'Reading'] });
        report('thinking', { message, context: await getThreadContext() });
        const streamer = sayStream({ buffer_size: 1 });
        await streamer.append({ markdown_text: '**Order 7** ' });
        await streamer.append({ markdown_text: 'is refunded.' });
        report('streamed', await streamer.stop());
      },
    }),
  );
};
