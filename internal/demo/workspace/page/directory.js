// Resolves the ids in messages to people, groups and channels, as one person sees them.

import { routeTo } from './route.js';

export class Directory {
  constructor({ people = [], bot = null, groups = [], channels = [], me = null, team = null } = {}) {
    this.everyone = bot ? [...people.filter((user) => user.id !== bot.id), bot] : people;
    this.bot = bot;
    this.groups = groups;
    this.channels = channels;
    this.me = me;
    this.team = team;
    this.byId = new Map(this.everyone.map((user) => [user.id, user]));
  }

  get tz() {
    return this.me?.tz || 'UTC';
  }

  user(id) {
    return this.byId.get(id);
  }

  group(id) {
    return this.groups.find((group) => group.id === id);
  }

  inGroup(id) {
    return Boolean(this.me && this.group(id)?.users?.includes(this.me.id));
  }

  channel(id) {
    return this.channels.find((channel) => channel.id === id);
  }

  name(id) {
    return nameOf(this.user(id)) || id;
  }

  title(id) {
    return titleOf(this.user(id));
  }

  // linkTo returns the address of a channel, or of the DM with a user.
  linkTo(id) {
    return routeTo({ user: this.me?.id ?? '', place: id });
  }

  // channelName returns the displayed name: #support, or in a DM the other person's name.
  channelName(channel) {
    if (!channel) return '';
    if (channel.is_im) return this.user(channel.user) ? this.name(channel.user) : channel.name;
    return channel.name;
  }
}

export function nameOf(user) {
  if (!user) return '';
  return user.profile?.display_name || user.profile?.real_name || user.real_name || user.name || user.id;
}

export function fullNameOf(user) {
  return user?.profile?.real_name || user?.real_name || nameOf(user);
}

export function titleOf(user) {
  return user?.profile?.title ?? '';
}

// kindOf returns the reason why a person can't approve: guest, external or deactivated.
export function kindOf(user) {
  if (!user) return '';
  if (user.deleted) return 'deactivated';
  if (user.is_stranger) return 'external';
  if (user.is_ultra_restricted || user.is_restricted) return 'guest';
  return '';
}
