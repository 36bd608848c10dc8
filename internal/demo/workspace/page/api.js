// The page's HTTP API (docs/workspace.md), and messages for its errors.

import { hearTime } from './time.js';

export class ApiError extends Error {
  constructor(code, status, body = {}) {
    super(code);
    this.code = code;
    this.status = status;
    this.errors = body.errors;
  }
}

async function request(method, path, body) {
  const init = { method, headers: { Accept: 'application/json' } };
  if (body !== undefined) {
    init.headers['Content-Type'] = 'application/json';
    init.body = JSON.stringify(body);
  }
  let response;
  try {
    response = await fetch(path, init);
  } catch {
    throw new ApiError('unreachable', 0);
  }
  hearTime(response.headers.get('Date'));
  const answer = await response.json().catch(() => ({ ok: false, error: `http_${response.status}` }));
  if (!answer.ok) throw new ApiError(answer.error ?? `http_${response.status}`, response.status, answer);
  return answer;
}

const seg = encodeURIComponent;
const of = (user, rest) => `/people/${seg(user)}/${rest}`;

export const api = {
  people: () => request('GET', '/people'),
  channels: (user) => request('GET', of(user, 'channels')),
  messages: (user, channel, { thread = '', mark = false } = {}) => {
    const query = new URLSearchParams();
    if (thread) query.set('thread_ts', thread);
    if (mark) query.set('mark', 'true');
    const text = query.toString();
    return request('GET', of(user, `channels/${seg(channel)}/messages${text ? '?' + text : ''}`));
  },
  send: (user, message) => request('POST', of(user, 'messages'), message),
  act: (user, action) => request('POST', of(user, 'actions'), action),
  views: (user) => request('GET', of(user, 'views')),
  submit: (user, view, values) => request('POST', of(user, `views/${seg(view)}/submit`), { values }),
  close: (user, view, all) => request('POST', of(user, `views/${seg(view)}/close`), all ? { all: true } : {}),
  command: (user, command) => request('POST', of(user, 'commands'), command),
  shortcut: (user, shortcut) => request('POST', of(user, 'shortcuts'), shortcut),
  // With quiet, the app gets no app_home_opened event.
  home: (user, quiet) => request('GET', of(user, quiet ? 'home?quiet=true' : 'home')),
  options: (user, question) => request('POST', of(user, 'options'), question),
  react: (user, reaction) => request('POST', of(user, 'reactions'), reaction),
  // snooze pauses a person's notifications until a time in seconds since 1970; 0 ends the pause.
  stop: (user, thread) => request('POST', of(user, 'stop'), thread),
  snooze: (user, until) => request('POST', of(user, 'snooze'), { until }),
  join: (user, channel) => request('POST', of(user, 'join'), { channel }),
};

// inWords returns a text for the person at the page that says what went wrong and what to do.
export function inWords(error, app = 'The app') {
  const sentences = {
    app_did_not_respond: `${app} didn’t answer in time. Wait a moment and try again.`,
    unreachable: 'The workspace can’t be reached. Check that it is still running; your text is kept here.',
    unknown_action: 'This button is no longer there: the message has changed in the meantime.',
    invalid_value: 'The workspace refused this value, because it isn’t the one that the app offered.',
    view_not_found: 'This window was closed in the meantime.',
    message_not_found: 'This message is no longer there.',
    thread_not_found: 'There is no such thread here.',
    channel_not_found: 'There is no such channel, or this person isn’t in it.',
    not_in_channel: 'This person isn’t in the channel.',
    user_not_found: 'There is no such person in this workspace.',
    account_inactive: 'This account is deactivated: it can look at nothing and say nothing.',
    invalid_snooze: 'Notifications can be paused for up to 31 days.',
    no_text: 'There is nothing to send yet.',
    msg_too_long: 'This message is too long. Slack takes up to 40,000 characters.',
    command_in_thread: 'Slash commands don’t work inside threads. Write it in the channel or in a DM.',
    unknown_command: 'No app here knows this command.',
    unknown_shortcut: 'No app here offers this shortcut.',
    invalid_app_response: `${app} answered with something that Slack would refuse. The reason is in the workspace’s log.`,
    is_archived: 'This channel is archived: it can be read, but nothing can be said in it.',
    already_reacted: 'This emoji is already there.',
    user_is_bot: 'This is a bot: one can’t look through its eyes.',
    foreign_origin: 'This request came from another web site and was refused.',
  };
  return sentences[error?.code] ?? `That didn’t work (${error?.code ?? error?.message ?? 'unknown error'}). Try again.`;
}
