// The messages that each person has not read. They are the source of the badges of the rail, and of the note "the Team
// Lead has a new message".

// badgeOf returns the number beside a channel: the unread mentions. In a DM, the number counts all unread messages,
// including replies in threads.
export function badgeOf(channel) {
  const mentions = channel.mention_count ?? 0;
  return channel.is_im || channel.is_mpim ? Math.max(channel.unread_count ?? 0, mentions) : mentions;
}

export class Unread {
  constructor() {
    this.byUser = new Map();
    // The unread replies in threads in which a person takes part. Slack shows these replies even without a mention.
    this.threads = new Map();
  }

  // set stores a person's channels. It returns the channels with a new message or mention, the latest channel first.
  set(user, channels) {
    const before = this.byUser.get(user);
    const counts = new Map();
    for (const channel of channels) {
      const count = badgeOf(channel);
      if (count > 0) counts.set(channel.id, { count, channel });
    }
    this.byUser.set(user, counts);
    if (!before) return [];
    return [...counts.values()].filter(({ count, channel }) => count > (before.get(channel.id)?.count ?? 0))
      .sort((a, b) => Number(b.channel.latest_ts ?? 0) - Number(a.channel.latest_ts ?? 0));
  }

  // reply stores a reply that a person has not seen.
  reply(user, { place, thread, ts }) {
    if (!this.threads.has(user)) this.threads.set(user, new Map());
    const threads = this.threads.get(user);
    const count = (threads.get(thread)?.count ?? 0) + 1;
    threads.set(thread, { place, thread, ts, count });
  }

  sawThread(user, thread) {
    return this.threads.get(user)?.delete(thread) ?? false;
  }

  waiting(user) {
    let sum = 0;
    for (const { count } of this.byUser.get(user)?.values() ?? []) sum += count;
    for (const { count } of this.threads.get(user)?.values() ?? []) sum += count;
    return sum;
  }

  // door returns the place of the latest unread message: {place, thread}, or undefined.
  door(user) {
    const channels = [...(this.byUser.get(user)?.values() ?? [])].map(({ channel }) => ({ place: channel.id, thread: '', ts: channel.latest_ts }));
    const all = [...channels, ...(this.threads.get(user)?.values() ?? [])].sort((a, b) => Number(b.ts ?? 0) - Number(a.ts ?? 0));
    return all[0] && { place: all[0].place, thread: all[0].thread };
  }
}

// concerned returns the people whom a reply concerns: the people who wrote in the thread before. The reply's author is
// left out. People whom the reply mentions are left out, too, because a mention is counted separately.
export function concerned(messages, ts) {
  const reply = messages.find((message) => message.ts === ts);
  if (!reply) return [];
  const text = JSON.stringify([reply.text, reply.blocks]);
  const users = new Set(messages.filter((message) => Number(message.ts) < Number(ts)).map((message) => message.user));
  return [...users].filter((user) => user && user !== reply.user && !text.includes(`<@${user}>`));
}
