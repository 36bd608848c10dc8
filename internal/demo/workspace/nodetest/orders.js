// The orders that a test can give to the app's Web API client.
'use strict';

const { WebClient } = require('@slack/web-api');

module.exports = (client, options) => ({
  // call calls one method.
  call: ({ method, ...args }) => client.apiCall(method, args),

  // pages walks through a method's cursor pages and returns the list of each.
  async pages({ method, field, ...args }) {
    const pages = [];
    for await (const page of client.paginate(method, args)) pages.push(page[field]);
    return pages;
  },

  // timed calls a method and returns how long that took, the client's own waits for 429 included.
  async timed({ method, ...args }) {
    const began = performance.now();
    const result = await client.apiCall(method, args);
    return { result, milliseconds: performance.now() - began };
  },

  // impatient calls a method with a client that doesn't wait for 429.
  impatient: ({ method, ...args }) => new WebClient(client.token, { ...options, rejectRateLimitedCalls: true }).apiCall(method, args),

  // as calls a method with another token.
  as: ({ token, method, ...args }) => new WebClient(token, options).apiCall(method, args),

  // upload sends files by the three calls of uploadV2.
  async upload({ contents, ...args }) {
    const file_uploads = contents.map(({ text, ...file }) => ({ file: Buffer.from(text), ...file }));
    const { files } = await client.files.uploadV2({ ...args, file_uploads });
    return files.flatMap((group) => group.files);
  },

  // stream writes pieces with the client's chat streamer, and stops.
  async stream({ pieces, stop, buffer_size, ...args }) {
    const streamer = client.chatStream({ ...args, buffer_size });
    for (const piece of pieces) await streamer.append(piece);
    return streamer.stop(stop);
  },
});
