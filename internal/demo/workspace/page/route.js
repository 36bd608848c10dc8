// The address of every state of the page, so that a link, a test or a screenshot opens it directly:
//   #/USER            the person, in the channel last looked at
//   #/USER/CHANNEL    a channel or DM (a user id opens the DM with that user)
//   #/USER/CHANNEL/TS its thread
//   #/USER/CHANNEL/TS/MESSAGE_TS   one message in it; TS is - for the channel itself
//   #/USER/home       the bot's Home tab

export function parseRoute(hash) {
  const parts = String(hash ?? '').replace(/^#?\/?/, '').split('/').filter(Boolean).map(decode);
  const thread = parts[2] === '-' ? '' : parts[2] ?? '';
  return { user: parts[0] ?? '', place: parts[1] ?? '', thread, message: parts[3] ?? '' };
}

export function routeTo({ user, place = '', thread = '', message = '' }) {
  const parts = [user, place, thread || (message ? '-' : ''), message];
  while (parts.length > 1 && !parts[parts.length - 1]) parts.pop();
  return '#/' + parts.map(encodeURIComponent).join('/');
}

// fromPermalink parses a message's link of this workspace, /archives/CHANNEL/p1700000000000100?thread_ts=….
export function fromPermalink(address, origin) {
  const url = URL.canParse(address, origin) ? new URL(address, origin) : null;
  if (!url || url.origin !== origin) return null;
  const path = /^\/archives\/([A-Z0-9]+)\/p(\d+)(\d{6})$/.exec(url.pathname);
  if (!path) return null;
  const message = `${path[2]}.${path[3]}`;
  const thread = url.searchParams.get('thread_ts') ?? '';
  return { place: path[1], message, thread: thread === message ? '' : thread };
}

function decode(part) {
  try {
    return decodeURIComponent(part);
  } catch {
    return part;
  }
}
