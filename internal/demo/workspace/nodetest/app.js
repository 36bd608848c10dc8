// A Bolt app for the local workspace. With a signing secret, the app uses HTTP, otherwise Socket Mode. The app reads
// orders from standard input. It writes the outcome of each order, and each received event, to standard output, one
// JSON value a line. The log goes to standard error.
'use strict';

const readline = require('node:readline');
const { App, LogLevel } = require('@slack/bolt');
const orders = require('./orders');
const { report, answer, logger } = require('./report');

const env = process.env;
const clientOptions = { slackApiUrl: env.SLACK_API_URL, logger, retryConfig: { retries: 2, minTimeout: 50, maxTimeout: 200 } };
const transport = env.SLACK_SIGNING_SECRET ? { signingSecret: env.SLACK_SIGNING_SECRET } : { socketMode: true, appToken: env.SLACK_APP_TOKEN };
const app = new App({
  ...transport,
  token: env.SLACK_BOT_TOKEN,
  clientOptions,
  logger,
  logLevel: LogLevel.WARN,
});

for (const part of ['messages', 'elements', 'forms', 'commands', 'home', 'agent']) require(`./${part}`)(app);
app.error(async (error) => report('error', { code: error.code, message: error.message, data: error.original?.data ?? error.data }));

const lines = readline.createInterface({ input: process.stdin });
lines.on('line', async (line) => {
  const { id, order, args } = JSON.parse(line);
  try {
    answer(id, { result: await orders(app.client, clientOptions)[order](args) });
  } catch (error) {
    answer(id, { error: { code: error.code, message: error.message, data: error.data, status: error.statusCode, retryAfter: error.retryAfter } });
  }
});
lines.on('close', async () => {
  await app.stop();
  process.exit(0);
});

app.start({ host: '127.0.0.1', port: 0 }).then((started) => report('started', { port: started.address?.().port }));
