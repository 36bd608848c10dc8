// What waits for everybody: the badges of the rail, and the nudge "the Team Lead has a new message".

// badgeOf is the number beside a channel: mentions, and in a DM everything, replies in threads included.
export function badgeOf(channel) {
  const mentions = channel.mention_count ?? 0;
  return channel.is_im || channel.is_mpim ? Math.max(channel.unread_count ?? 0, mentions) : mentions;
}

export class Unread {
  constructor() {
    this.byUser = new Map();
  }

  // set takes a person's channels and answers the channels in which something new waits, the latest first.
  set(user, channels) {
    const before = this.byUser.get(user);
    const counts = new Map();
    for (const channel of channels) {
      const count = badgeOf(channel);
      if (count > 0) counts.set(channel.id, { count, channel });
    }
    this.byUser.set(user, counts);
    if (!before) return [];
    return latestFirst([...counts.values()].filter(({ count, channel }) => count > (before.get(channel.id)?.count ?? 0)));
  }

  waiting(user) {
    let sum = 0;
    for (const { count } of this.byUser.get(user)?.values() ?? []) sum += count;
    return sum;
  }

  // door is the channel in which the latest unread thing waits for a person, or undefined.
  door(user) {
    return latestFirst([...(this.byUser.get(user)?.values() ?? [])])[0]?.channel;
  }
}

function latestFirst(entries) {
  return entries.sort((a, b) => Number(b.channel.latest_ts ?? 0) - Number(a.channel.latest_ts ?? 0));
}
