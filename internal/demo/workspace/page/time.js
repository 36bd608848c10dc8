// Times in the selected person's time zone, in Slack's wording.

// The workspace's clock may be ahead of this machine's, for example in a scenario that lasts days.
let ahead = 0;

// now is the workspace's time in seconds since 1970.
export function now() {
  return Date.now() / 1000 + ahead;
}

// hearTime reads the date of an answer of the workspace. It ignores a difference of less than five seconds, because
// dates have whole seconds, and an answer takes time.
export function hearTime(date) {
  const heard = Date.parse(date ?? '') / 1000;
  const difference = heard - Date.now() / 1000;
  if (Number.isFinite(difference)) ahead = Math.abs(difference) < 5 ? 0 : difference;
}

const parts = new Map();

// inZone splits a moment (seconds since 1970) into the calendar fields of a time zone.
export function inZone(seconds, tz) {
  const format = formatter(tz);
  const fields = {};
  for (const { type, value } of format.formatToParts(new Date(seconds * 1000))) fields[type] = value;
  return {
    year: Number(fields.year),
    month: Number(fields.month),
    day: Number(fields.day),
    hour: Number(fields.hour) % 24,
    minute: Number(fields.minute),
    second: Number(fields.second),
  };
}

function formatter(tz) {
  if (!parts.has(tz)) {
    const options = {
      year: 'numeric', month: 'numeric', day: 'numeric',
      hour: 'numeric', minute: 'numeric', second: 'numeric', hourCycle: 'h23',
    };
    try {
      parts.set(tz, new Intl.DateTimeFormat('en-US', { ...options, timeZone: tz || 'UTC' }));
    } catch {
      // The browser does not support this time zone, so use UTC.
      parts.set(tz, new Intl.DateTimeFormat('en-US', { ...options, timeZone: 'UTC' }));
    }
  }
  return parts.get(tz);
}

// fromZone is the inverse of inZone. It returns the seconds since 1970 of a local time in a time zone.
export function fromZone({ year, month, day, hour, minute }, tz) {
  const wanted = Date.UTC(year, month - 1, day, hour, minute) / 1000;
  let guess = wanted;
  // Correct the guess twice, because the first correction may cross a change of summer time.
  for (let i = 0; i < 2; i += 1) {
    const z = inZone(guess, tz);
    guess += wanted - Date.UTC(z.year, z.month - 1, z.day, z.hour, z.minute) / 1000;
  }
  return guess;
}

const months = ['January', 'February', 'March', 'April', 'May', 'June', 'July', 'August', 'September', 'October', 'November', 'December'];
const weekdays = ['Sunday', 'Monday', 'Tuesday', 'Wednesday', 'Thursday', 'Friday', 'Saturday'];
const two = (n) => String(n).padStart(2, '0');

function ordinal(n) {
  if (n % 100 >= 11 && n % 100 <= 13) return `${n}th`;
  return n + (['th', 'st', 'nd', 'rd'][n % 10] ?? 'th');
}

function dayNumber(z) {
  return Math.round(Date.UTC(z.year, z.month - 1, z.day) / 86400000);
}

// relativeDay returns yesterday, today, tomorrow or "".
function relativeDay(z, now, tz) {
  return { '-1': 'yesterday', 0: 'today', 1: 'tomorrow' }[dayNumber(z) - dayNumber(inZone(now, tz))];
}

export function clock(seconds, tz) {
  const z = inZone(seconds, tz);
  return `${z.hour % 12 || 12}:${two(z.minute)} ${z.hour < 12 ? 'AM' : 'PM'}`;
}

// shortClock returns the time beside a grouped message, without AM and PM.
export function shortClock(seconds, tz) {
  const z = inZone(seconds, tz);
  return `${z.hour % 12 || 12}:${two(z.minute)}`;
}

// dayKey returns the same value for all times of one day.
export function dayKey(seconds, tz) {
  const z = inZone(seconds, tz);
  return `${z.year}-${two(z.month)}-${two(z.day)}`;
}

// dayTitle returns the text of a day separator.
export function dayTitle(seconds, now, tz) {
  const z = inZone(seconds, tz);
  const relative = relativeDay(z, now, tz);
  if (relative) return capital(relative);
  const name = `${weekdays[(dayNumber(z) + 4) % 7]}, ${months[z.month - 1]} ${ordinal(z.day)}`;
  return z.year === inZone(now, tz).year ? name : `${name}, ${z.year}`;
}

export function fullTime(seconds, now, tz) {
  return `${dayTitle(seconds, now, tz)} at ${clock(seconds, tz)}`;
}

export function ago(seconds, now) {
  const past = now - seconds;
  if (past >= 0 && past < 5) return 'just now';
  const span = Math.abs(past);
  const [n, unit] = span < 60 ? [Math.round(span), 'second']
    : span < 3600 ? [Math.round(span / 60), 'minute']
    : span < 86400 ? [Math.round(span / 3600), 'hour']
    : [Math.round(span / 86400), 'day'];
  const words = `${n} ${unit}${n === 1 ? '' : 's'}`;
  return past >= 0 ? `${words} ago` : `in ${words}`;
}

function capital(s) {
  return s.charAt(0).toUpperCase() + s.slice(1);
}

// formatDate replaces the tokens of Slack's <!date^…>. With opening, the date begins a line.
export function formatDate(seconds, format, now, tz, opening) {
  const z = inZone(seconds, tz);
  const weekday = weekdays[(dayNumber(z) + 4) % 7];
  const month = months[z.month - 1];
  const relative = relativeDay(z, now, tz);
  const time = `${z.hour % 12 || 12}:${two(z.minute)}`;
  const half = z.hour < 12 ? 'AM' : 'PM';
  const date = `${month} ${ordinal(z.day)}, ${z.year}`;
  const short = `${month.slice(0, 3)} ${z.day}, ${z.year}`;
  const long = `${weekday}, ${date}`;
  const tokens = {
    date_num: `${z.year}-${two(z.month)}-${two(z.day)}`,
    date_slash: `${two(z.month)}/${two(z.day)}/${z.year}`,
    date,
    date_short: short,
    date_long: long,
    date_long_full: long,
    date_pretty: relative ?? date,
    date_short_pretty: relative ?? short,
    date_long_pretty: relative ?? long,
    day_divider_pretty: relative ?? long,
    time: `${time} ${half}`,
    time_secs: `${time}:${two(z.second)} ${half}`,
    ago: ago(seconds, now),
  };
  const text = format.replace(/\{(\w+)\}/g, (whole, name) => tokens[name] ?? whole);
  // "today" has a capital letter only at the beginning of a sentence.
  return opening && /^\{/.test(format) ? capital(text) : text;
}
