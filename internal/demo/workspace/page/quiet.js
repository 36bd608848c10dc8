// Quiet times: the sign beside a name, and the menu for pausing one's own notifications.

import { h } from './widgets/dom.js';
import { icon } from './widgets/icons.js';
import { createMenu } from './widgets/menu.js';
import { clock, dayTitle, fromZone, inZone, now } from './time.js';

// quietUntil returns the end of the current quiet time in seconds since 1970, or 0.
export function quietUntil(user, at) {
  const { dnd_enabled: enabled, next_dnd_start_ts: start, next_dnd_end_ts: end } = user?.dnd ?? {};
  return enabled && start <= at && at < end ? end : 0;
}

// inQuiet returns a sentence with the end of a person's quiet time, in the reader's time zone, or "".
export function inQuiet(user, tz, at = now()) {
  const until = quietUntil(user, at);
  if (!until) return '';
  const day = dayTitle(until, at, tz);
  const when = { Today: '', Tomorrow: 'tomorrow at ' }[day] ?? `${day} at `;
  return `Notifications paused until ${when}${clock(until, tz)}`;
}

// drawQuiet returns the sign of a person's quiet time, or null.
export function drawQuiet(user, people) {
  const text = inQuiet(user, people.tz);
  return text ? h('span', { class: 'quiet', role: 'img', 'aria-label': text, title: text, 'data-testid': 'quiet', 'data-user': user.id }, icon('quiet', 14)) : null;
}

// pauses returns the possible pauses: {text, until}. A day begins at nine in the person's time zone.
export function pauses(at, tz) {
  const morning = (days) => {
    const { year, month, day } = inZone(at, tz);
    return fromZone({ year, month, day: day + days, hour: 9, minute: 0 }, tz);
  };
  const { year, month, day } = inZone(at, tz);
  const toMonday = 7 - ((new Date(Date.UTC(year, month - 1, day)).getUTCDay() + 6) % 7);
  const out = [
    { text: 'Pause for 30 minutes', until: at + 30 * 60 }, { text: 'Pause for 1 hour', until: at + 3600 }, { text: 'Pause for 2 hours', until: at + 2 * 3600 },
    { text: 'Pause until tomorrow at 9:00 AM', until: morning(1) },
  ];
  if (toMonday > 1) out.push({ text: 'Pause until Monday at 9:00 AM', until: morning(toMonday) });
  return out.map((one) => ({ ...one, until: Math.round(one.until) }));
}

// createPause draws the menu's button. choose gets the end of the pause, or 0 to end the pause now.
export function createPause(me, tz, choose) {
  const paused = inQuiet(me, tz);
  const items = () => [
    ...(me.dnd?.snooze_enabled && paused ? [{ text: 'Resume notifications', value: '0' }] : []),
    ...pauses(now(), tz).map(({ text, until }) => ({ text, value: String(until) })),
  ];
  return createMenu({
    label: paused ? `${paused}. Change` : 'Pause notifications', trigger: icon(paused ? 'quiet' : 'bell', 18), items,
    attributes: { 'data-testid': 'pause', 'data-key': 'pause', title: paused || 'Pause notifications' },
    onchoose: (item) => choose(Number(item.value)),
  });
}
