import assert from 'node:assert/strict';
import { test } from 'node:test';
import { proposals } from '../page/panes/completion.js';
import { encodeMentions } from '../page/panes/mentions.js';
import { Directory } from '../page/directory.js';
import { emojiFor, withEmoji } from '../page/emoji.js';
import { Form } from '../page/blockkit/form.js';
import { readOrder } from '../page/panes/order.js';
import { inQuiet, pauses, quietUntil } from '../page/quiet.js';
import { fromPermalink, parseRoute, routeTo } from '../page/route.js';
import { ago, dayTitle, formatDate, fromZone, hearTime, inZone, now } from '../page/time.js';
import { concerned, Unread } from '../page/unread.js';

const noon = Date.UTC(2026, 2, 2, 17, 5, 9) / 1000; // Monday, 2 March 2026
const newYork = 'America/New_York';

test('dates are written in the time zone of who reads', () => {
  assert.equal(formatDate(noon, '{date_num} {time_secs}', noon, newYork), '2026-03-02 12:05:09 PM');
  assert.equal(formatDate(noon, '{date_long}', noon, 'Asia/Tokyo'), 'Tuesday, March 3rd, 2026');
  assert.equal(formatDate(noon, '{date_short_pretty} at {time}', noon + 60, newYork, true), 'Today at 12:05 PM');
  assert.equal(formatDate(noon, '{date_short_pretty} at {time}', noon + 60, newYork), 'today at 12:05 PM');
  assert.equal(formatDate(noon, 'by {date_pretty} at {time}', noon - 86400, newYork), 'by tomorrow at 12:05 PM');
  assert.equal(formatDate(noon, '{date_short_pretty}', noon + 10 * 86400, newYork), 'Mar 2, 2026');
  assert.equal(formatDate(noon, '{nonsense} {ago}', noon + 7200, 'No/Such_Zone'), '{nonsense} 2 hours ago');
  assert.equal(ago(noon + 60, noon), 'in 1 minute');
});

test('the page goes by the workspace’s clock', () => {
  const here = Date.now() / 1000;
  const near = (wanted) => assert.ok(Math.abs(now() - wanted) < 3, `${now()} is not ${wanted}`);
  near(here);
  hearTime(new Date((here + 3 * 86400) * 1000).toUTCString());
  near(here + 3 * 86400);
  hearTime(null);
  near(here + 3 * 86400);
  hearTime(new Date((here - 1) * 1000).toUTCString()); // the date is a second old, because the answer took a second
  assert.ok(now() >= here);
});

test('quiet times', () => {
  const user = (start, end, enabled = true) => ({ dnd: { dnd_enabled: enabled, next_dnd_start_ts: start, next_dnd_end_ts: end } });
  assert.equal(quietUntil(user(noon, noon + 60), noon), noon + 60);
  assert.equal(quietUntil(user(noon, noon + 60), noon + 60), 0);
  assert.equal(quietUntil(user(noon + 1, noon + 60), noon), 0);
  assert.equal(quietUntil(user(1, 1, false), noon), 0);
  assert.equal(quietUntil({}, noon), 0);
  assert.equal(inQuiet(user(noon, noon + 3600), newYork, noon), 'Notifications paused until 1:05 PM');
  assert.equal(inQuiet(user(noon, noon + 86400), newYork, noon), 'Notifications paused until tomorrow at 12:05 PM');
  assert.equal(inQuiet(user(noon, noon + 3 * 86400), newYork, noon), 'Notifications paused until Thursday, March 5th at 12:05 PM');
  assert.equal(inQuiet(user(1, 1, false), newYork, noon), '');
});

test('how long one can pause', () => {
  const at = (one) => { const z = inZone(one.until, newYork); return `${z.month}/${z.day} ${z.hour}:${z.minute}`; };
  const texts = (from) => pauses(from, newYork).map((one) => one.text.replace('Pause ', ''));
  assert.deepEqual(pauses(noon, newYork).map(at), ['3/2 12:35', '3/2 13:5', '3/2 14:5', '3/3 9:0', '3/9 9:0']);
  assert.deepEqual(texts(noon), ['for 30 minutes', 'for 1 hour', 'for 2 hours', 'until tomorrow at 9:00 AM', 'until Monday at 9:00 AM']);
  // On a Sunday, tomorrow is Monday, so the menu has no separate item for Monday.
  assert.deepEqual(texts(noon - 86400), ['for 30 minutes', 'for 1 hour', 'for 2 hours', 'until tomorrow at 9:00 AM']);
  // The night before 8 March is an hour shorter, because summer time begins.
  assert.equal(at(pauses(noon + 5 * 86400, newYork)[3]), '3/8 9:0');
});

test('days have names', () => {
  assert.equal(dayTitle(noon, noon, newYork), 'Today');
  assert.equal(dayTitle(noon, noon + 86400, newYork), 'Yesterday');
  assert.equal(dayTitle(noon, noon + 3 * 86400, newYork), 'Monday, March 2nd');
  assert.equal(dayTitle(noon, noon + 400 * 86400, newYork), 'Monday, March 2nd, 2026');
});

test('a moment goes to a wall clock and back, also around the change to summer time', () => {
  for (let hour = 0; hour < 24 * 400; hour += 1) {
    const seconds = Date.UTC(2026, 0, 1, hour, 30) / 1000;
    for (const tz of [newYork, 'Europe/Berlin', 'Asia/Kolkata', 'UTC']) {
      const back = fromZone(inZone(seconds, tz), tz);
      // At the end of summer time, one hour occurs twice. Either reading of this hour is correct.
      assert.ok(back === seconds || Math.abs(back - seconds) === 3600, `${tz} ${seconds} ${back}`);
      assert.deepEqual(inZone(back, tz).hour, inZone(seconds, tz).hour);
    }
  }
});

test('addresses', () => {
  assert.deepEqual(parseRoute('#/U1/C1/17.1'), { user: 'U1', place: 'C1', thread: '17.1', message: '' });
  assert.deepEqual(parseRoute('#/U1/C1/-/17.1'), { user: 'U1', place: 'C1', thread: '', message: '17.1' });
  assert.deepEqual(parseRoute(''), { user: '', place: '', thread: '', message: '' });
  assert.deepEqual(parseRoute('#/%E0%A4%A'), { user: '%E0%A4%A', place: '', thread: '', message: '' });
  assert.equal(routeTo({ user: 'U1', place: 'C1' }), '#/U1/C1');
  assert.equal(routeTo({ user: 'U1', place: 'C1', message: '17.1' }), '#/U1/C1/-/17.1');
  const here = 'http://127.0.0.1:8484';
  assert.deepEqual(fromPermalink(`${here}/archives/C1/p1700000000000100?thread_ts=1690000000.000001`, here), { place: 'C1', message: '1700000000.000100', thread: '1690000000.000001' });
  assert.equal(fromPermalink('/archives/C1/p17', here), null);
  assert.equal(fromPermalink('https://elsewhere.example/archives/C1/p1700000000000100', here), null);
  assert.equal(fromPermalink('javascript:alert(1)', here), null);
});

const people = new Directory({
  people: [{ id: 'U1', name: 'sam', profile: { display_name: 'Sam' } }, { id: 'U2', name: 'samr', profile: { display_name: 'Sam Rivera' } }],
  bot: { id: 'UB', name: 'countersign', is_bot: true, profile: { display_name: 'Countersign' } },
  groups: [{ id: 'S1', handle: 'support', users: ['U1'] }], channels: [{ id: 'C1', name: 'support' }],
});

test('names that are typed become ids', () => {
  const table = [
    ['@Sam Rivera and @sam, @SAM!', '<@U2> and <@U1>, <@U1>!'],
    ['@countersign #support @support @here', '<@UB> <#C1> <!subteam^S1> <!here>'],
    ['mail@sam.example @samuel #supporters', 'mail@sam.example @samuel #supporters'],
    ['`@sam` ```@sam``` @sam', '`@sam` ```@sam``` <@U1>'],
    ['<b> & @nobody', '<b> & @nobody'],
  ];
  for (const [typed, want] of table) assert.equal(encodeMentions(typed, people), want);
});

test('a command is told from a message', () => {
  const commands = [{ command: '/countersign', should_escape: true }, { command: '/raw' }];
  const read = (text, inThread = false) => readOrder(text, { commands, people, inThread });
  assert.deepEqual(read('/countersign delegate to @Sam Rivera '), { command: '/countersign', text: 'delegate to <@U2>' });
  assert.deepEqual(read('/raw delegate to @Sam Rivera'), { command: '/raw', text: 'delegate to @Sam Rivera' });
  assert.deepEqual(read('/countersign'), { command: '/countersign', text: '' });
  assert.deepEqual(read(' /countersign @sam'), { text: '/countersign <@U1>' });
  assert.deepEqual(read('either/or'), { text: 'either/or' });
  assert.match(read('/nothing here').problem, /knows \/nothing.*\/countersign, \/raw/);
  assert.match(read('/countersign away', true).problem, /don’t work inside threads/);
});

test('what is proposed after a slash', () => {
  const commands = [{ command: '/countersign', description: 'What is waiting', usage_hint: 'away until monday' }];
  assert.deepEqual(proposals('/', people, commands), { from: 0, options: [{ insert: '/countersign ', text: '/countersign', description: 'away until monday · What is waiting' }] });
  assert.deepEqual(proposals('/x', people, commands).options, []);
  assert.equal(proposals('/countersign away', people, commands), null);
});

test('emoji', () => {
  assert.equal(withEmoji('a :white_check_mark: :nope:'), 'a ✅ :nope:');
  for (const name of ['x', 'hourglass', 'warning', 'lock', 'rotating_light', 'large_green_circle', 'eyes', '+1']) assert.ok(emojiFor(name), name);
  assert.equal(emojiFor('constructor'), undefined);
});

test('a form keeps what was typed, checks it and sends it', () => {
  const amount = { type: 'input', block_id: 'amount', element: { type: 'number_input', action_id: 'v', is_decimal_allowed: true, initial_value: '49.99', max_value: '500' } };
  const reason = { type: 'input', block_id: 'reason', element: { type: 'plain_text_input', action_id: 'v', max_length: 5 } };
  const tell = { type: 'input', block_id: 'tell', optional: true, element: { type: 'multi_users_select', action_id: 'v', initial_users: ['U1'] } };
  const currency = { type: 'input', block_id: 'currency', optional: true, element: { type: 'static_select', action_id: 'v', initial_option: { value: 'USD' } } };
  const blocks = [amount, reason, tell, currency];
  const form = new Form();
  assert.equal(form.check(blocks), false);
  assert.deepEqual([...form.errors.keys()], ['reason']);
  form.set(reason, reason.element, 'héllo!');
  form.set(amount, amount.element, '501');
  assert.equal(form.check(blocks), false);
  assert.match(form.errors.get('reason'), /no more than 5/);
  assert.match(form.errors.get('amount'), /500 or less/);
  form.set(reason, reason.element, 'héllo');
  form.set(amount, amount.element, '12.5');
  assert.equal(form.check(blocks), true);
  form.set(currency, currency.element, null);
  form.set(tell, tell.element, []);
  assert.deepEqual(form.collect(blocks), { amount: { v: '12.5' }, reason: { v: 'héllo' }, tell: { v: [] }, currency: { v: '' } });
  // The app has updated the view. Typed values stay, and values of removed fields are not sent.
  assert.deepEqual(form.collect([amount]), { amount: { v: '12.5' } });
});

test('what was said about a field goes when it is changed', () => {
  const mended = [];
  const form = new Form((block) => mended.push(block));
  const note = { type: 'input', block_id: 'note', element: { type: 'plain_text_input', action_id: 'v' } };
  form.check([note]);
  assert.equal(form.errors.has('note'), true);
  form.set(note, note.element, 'w');
  form.set(note, note.element, 'why');
  assert.equal(form.errors.has('note'), false);
  assert.deepEqual(mended, ['note']);
});

test('what was typed goes ahead of a click, once', () => {
  const note = { type: 'input', block_id: 'note', element: { type: 'plain_text_input', action_id: 'v', initial_value: 'x' } };
  const told = { type: 'input', block_id: 'told', dispatch_action: true, element: { type: 'plain_text_input', action_id: 'v' } };
  const form = new Form();
  assert.deepEqual(form.unsent([note, told]), []);
  form.set(note, note.element, 'why');
  form.set(told, told.element, 'known already');
  assert.deepEqual(form.unsent([note, told]).map((one) => [one.block.block_id, one.value]), [['note', 'why']]);
  assert.deepEqual(form.unsent([note, told]), []);
  form.set(note, note.element, null);
  assert.deepEqual(form.unsent([note]).map((one) => one.value), ['']);
});

test('unread: what is new is told once, the latest first', () => {
  const unread = new Unread();
  const dm = { id: 'D1', is_im: true, unread_count: 1, mention_count: 1, latest_ts: '5' };
  const channel = { id: 'C1', unread_count: 9, mention_count: 0, latest_ts: '9' };
  assert.deepEqual(unread.set('U1', [dm, channel]), []); // the first load reports no new messages
  assert.equal(unread.waiting('U1'), 1);
  const mentioned = { ...channel, mention_count: 2 };
  assert.deepEqual(unread.set('U1', [dm, mentioned]).map((news) => news.channel.id), ['C1']);
  assert.equal(unread.waiting('U1'), 3);
  assert.deepEqual(unread.door('U1'), { place: 'C1', thread: '' });
  assert.deepEqual(unread.set('U1', [{ ...dm, unread_count: 0, mention_count: 0 }]), []);
  assert.equal(unread.door('U1'), undefined);
});

test('replies wait for those who take part in the thread', () => {
  const messages = [
    { ts: '1.0', user: 'U1' }, { ts: '2.0', user: 'UB' }, { ts: '3.0', user: 'U2' },
    { ts: '4.0', user: 'UB', blocks: [{ text: { text: 'done, <@U2>' } }] }, { ts: '5.0', user: 'U3' },
  ];
  assert.deepEqual(concerned(messages, '4.0'), ['U1']); // U2 is mentioned, and U3 wrote after the reply
  assert.deepEqual(concerned(messages, '3.0'), ['U1', 'UB']);
  assert.deepEqual(concerned(messages, '9.0'), []);
  const unread = new Unread();
  unread.set('U1', [{ id: 'C2', mention_count: 1, latest_ts: '3' }]);
  unread.reply('U1', { place: 'C1', thread: '1.0', ts: '4.0' });
  unread.reply('U1', { place: 'C1', thread: '1.0', ts: '5.0' });
  assert.equal(unread.waiting('U1'), 3);
  assert.deepEqual(unread.door('U1'), { place: 'C1', thread: '1.0' });
  assert.equal(unread.sawThread('U1', '1.0'), true);
  assert.deepEqual(unread.door('U1'), { place: 'C2', thread: '' });
});
