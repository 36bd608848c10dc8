// The orders that a test can give to the app's Web API client.
'use strict';

const { WebClient } = require('@slack/web-api');

module.exports = (client, options) => ({
  // call calls one method.
  call: ({ method, ...args }) => client.apiCall(method, args),

  // pages reads all pages of a method with a cursor, and returns the list of each page.
  async pages({ method, field, ...args }) {
    const pages = [];
    for await (const page of client.paginate(method, args)) pages.push(page[field]);
    return pages;
  },

  // timed calls a method, and returns the duration. The duration includes the client's waits after status 429.
  async timed({ method, ...args }) {
    const began = performance.now();
    const result = await client.apiCall(method, args);
    return { result, milliseconds: performance.now() - began };
  },

  // impatient calls a method with a client that doesn't wait after status 429.
  impatient: ({ method, ...args }) => new WebClient(client.token, { ...options, rejectRateLimitedCalls: true }).apiCall(method, args),

  // as calls a method with another token.
  as: ({ token, method, ...args }) => new WebClient(token, options).apiCall(method, args),

  // upload sends files with the three calls of uploadV2.
  async upload({ contents, ...args }) {
    const file_uploads = contents.map(({ text, ...file }) => ({ file: Buffer.from(text), ...file }));
    const { files } = await client.files.uploadV2({ ...args, file_uploads });
    return files.flatMap((group) => group.files);
  },

  // stream writes pieces with the client's chat streamer, and ends the stream.
  async stream({ pieces, stop, buffer_size, ...args }) {
    const streamer = client.chatStream({ ...args, buffer_size });
    for (const piece of pieces) await streamer.append(piece);
    return streamer.stop(stop);
  },
});
