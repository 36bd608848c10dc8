// The address of every state of the page, so that a link, a test or a screenshot opens it directly:
//   #/USER            the person, in the channel last looked at
//   #/USER/CHANNEL    a channel or DM (a user id opens the DM with that user)
//   #/USER/CHANNEL/TS its thread
//   #/USER/home       the bot's Home tab

export function parseRoute(hash) {
  const parts = String(hash ?? '').replace(/^#?\/?/, '').split('/').filter(Boolean).map(decode);
  return { user: parts[0] ?? '', place: parts[1] ?? '', thread: parts[2] ?? '' };
}

export function routeTo({ user, place = '', thread = '' }) {
  const parts = [user, place, thread];
  while (parts.length > 1 && !parts[parts.length - 1]) parts.pop();
  return '#/' + parts.map(encodeURIComponent).join('/');
}

function decode(part) {
  try {
    return decodeURIComponent(part);
  } catch {
    return part;
  }
}
