// One message.

import { avatar } from '../widgets/avatar.js';
import { drawBlocks } from '../blockkit/blocks.js';
import { clamp, longText } from '../blockkit/clamp.js';
import { kindOf } from '../directory.js';
import { h } from '../widgets/dom.js';
import { emojiFor } from '../emoji.js';
import { icon } from '../widgets/icons.js';
import { link, safeUrl } from '../blockkit/inline.js';
import { createMenu } from '../widgets/menu.js';
import { drawQuiet } from '../quiet.js';
import { renderMrkdwn } from '../blockkit/richtext.js';
import { ago, clock, fullTime, now, shortClock } from '../time.js';

// authorOf returns the author of a message, in the form of a user.
function authorOf(message, people) {
  const user = people.user(message.user) ?? (message.bot_id && people.bot?.profile ? people.bot : null);
  if (message.username) return { ...user, id: message.user ?? message.bot_id ?? message.username, is_bot: true, real_name: message.username, profile: { display_name: message.username, real_name: message.username } };
  return user ?? { id: message.user ?? message.bot_id ?? '?', name: message.user ?? 'unknown', real_name: message.user ?? 'Somebody', profile: {} };
}

export function authorName(message, people) {
  const author = authorOf(message, people);
  return author.profile?.display_name || author.profile?.real_name || author.real_name || author.name;
}

const notices = new Set(['channel_join', 'channel_leave', 'channel_topic', 'channel_purpose', 'channel_name', 'group_join', 'group_leave', 'bot_add', 'bot_remove']);

// continues returns whether a message is shown under the author's name of the previous message.
export function continues(message, previous) {
  return Boolean(previous) && !message.subtype && !previous.subtype && message.user === previous.user && message.bot_id === previous.bot_id
    && message.username === previous.username && Boolean(message.is_ephemeral) === Boolean(previous.is_ephemeral) && !previous.reply_count
    && Number(message.ts) - Number(previous.ts) < 300;
}

// drawMessage draws a message; context is {people, channel, surface, grouped, inThread, status, threadLink, react,
// shortcuts, run, stop}.
export function drawMessage(message, context) {
  const { people, grouped } = context;
  const seconds = Number(message.ts);
  const author = authorOf(message, people);
  const name = authorName(message, people);
  const time = h('time', { class: 'message-time', datetime: new Date(seconds * 1000).toISOString(), title: fullTime(seconds, now(), people.tz) }, grouped ? shortClock(seconds, people.tz) : clock(seconds, people.tz));
  const notice = notices.has(message.subtype);
  const classes = ['message', grouped && 'message-grouped', message.is_ephemeral && 'message-ephemeral', notice && 'message-notice', message.streaming_state === 'in_progress' && 'message-streaming'];
  return h('article', {
    class: classes.filter(Boolean).join(' '), tabindex: '-1', 'aria-label': `${name}, ${clock(seconds, people.tz)}`,
    'data-testid': 'message', 'data-ts': message.ts, 'data-thread-ts': message.thread_ts, 'data-channel': context.channel, 'data-user': message.user, 'data-ephemeral': message.is_ephemeral ? 'true' : null,
  },
  message.is_ephemeral ? h('div', { class: 'ephemeral-note' }, icon('eye', 14), 'Only visible to you') : null,
  message.subtype === 'thread_broadcast' && !context.inThread ? h('div', { class: 'ephemeral-note' }, icon('thread', 14), 'replied in a thread') : null,
  h('div', { class: 'message-gutter' }, grouped ? time : avatar(author, notice ? 'small' : 'medium')),
  h('div', { class: 'message-main' },
    grouped ? null : h('div', { class: 'message-head' }, h('span', { class: 'message-author' }, name), badges(author), drawQuiet(author, people), time),
    h('div', { class: 'message-body' }, drawBody(message, context)),
    message.streaming_state === 'in_progress' ? stopButton(context.stop) : null,
    (message.attachments ?? []).map((attachment, index) => drawAttachment(attachment, message, context, index)),
    (message.files ?? []).map(drawFile),
    drawReactions(message, context),
    drawReplies(message, context),
    context.status ? drawStatus(context.status, people) : null),
  message.is_ephemeral || notice || message.subtype === 'tombstone' ? null : drawTools(message, name, context));
}

const quick = ['white_check_mark', 'eyes', '+1', 'tada', 'heart', 'joy', 'thinking_face', 'pray', 'raised_hands', 'hourglass', 'warning', 'x'];

// drawTools draws the buttons of a message.
function drawTools(message, name, context) {
  const { shortcuts } = context;
  return h('div', { class: 'message-tools' },
    createMenu({
      label: `React to ${name}`, trigger: icon('smile', 18), grid: true, attributes: { 'data-testid': 'add-reaction', title: 'Add a reaction' },
      items: quick.map((emoji) => ({ text: emojiFor(emoji), label: emoji.replaceAll('_', ' '), value: emoji })), onchoose: (item) => context.react(item.value, false),
    }),
    context.threadLink ? h('a', { class: 'button button-icon', href: context.threadLink, 'aria-label': `Reply to ${name} in a thread`, title: 'Reply in thread', 'data-testid': 'reply' }, icon('thread', 18)) : null,
    shortcuts.length ? createMenu({
      label: `More actions with the message from ${name}`, trigger: icon('more', 18), attributes: { 'data-testid': 'message-more', title: 'More actions' },
      items: shortcuts.map((one) => ({ text: one.name, value: one.callback_id })), onchoose: (item) => context.run(item.value),
    }) : null);
}

function badges(author) {
  if (author.is_bot) return h('span', { class: 'badge-app' }, 'App');
  const kind = kindOf(author);
  return kind ? h('span', { class: 'badge-app' }, kind) : null;
}

function drawBody(message, context) {
  const edited = message.edited ? h('span', { class: 'edited', title: `Edited ${fullTime(Number(message.edited.ts), now(), context.people.tz)}` }, ' (edited)') : null;
  if (message.blocks?.length) return [drawBlocks(message.blocks, context.surface), edited];
  if (!message.text) return [edited];
  const text = h('div', { class: 'rich' }, renderMrkdwn(message.text, context.people, { jumbo: true }));
  const last = text.lastElementChild;
  if (edited && last?.classList.contains('lines')) last.append(edited);
  else if (edited) text.append(edited);
  return [clamp(`${context.surface.key}/text`, text, longText(message.text))];
}

function drawAttachment(attachment, message, context, index) {
  const box = h('div', { class: 'attachment' });
  const colour = { good: '#2f9e6e', warning: '#d99a1c', danger: '#cf3b2b' }[attachment.color] ?? (/^#?[0-9a-f]{6}$/i.test(attachment.color ?? '') ? `#${attachment.color.replace('#', '')}` : '');
  if (colour) box.style.borderInlineStartColor = colour;
  const say = (text, className) => (text ? h('div', { class: className }, renderMrkdwn(text, context.people)) : null);
  const parts = attachment.blocks?.length ? [drawBlocks(attachment.blocks, { ...context.surface, key: `${context.surface.key}/attachment${index}` })] : [
    attachment.author_name ? h('div', { class: 'muted' }, attachment.author_name) : null,
    attachment.title ? h('div', { class: 'attachment-title' }, attachment.title_link ? link(attachment.title_link, [attachment.title]) : attachment.title) : null,
    say(attachment.text, 'rich'),
    attachment.fields?.length ? h('div', { class: 'fields' }, attachment.fields.map((field) => h('div', { class: 'section-field' }, h('strong', null, field.title), say(field.value, 'rich')))) : null,
    attachment.footer ? h('div', { class: 'muted' }, attachment.footer) : null,
    attachment.title || attachment.text || attachment.fields?.length ? null : say(attachment.fallback, 'rich'),
  ];
  return h('div', null, say(attachment.pretext, 'rich'), h('div', { class: 'attachment-holder' }, append(box, parts)));
}

function append(box, parts) {
  box.append(...parts.flat(Infinity).filter(Boolean));
  return box;
}

function drawFile(file) {
  const url = safeUrl(file.permalink ?? file.url_private ?? '') ?? (/^\/(?!\/)/.test(file.url_private ?? '') ? file.url_private : null);
  const name = file.title || file.name || 'File';
  const size = Number(file.size) > 0 ? sizeInWords(Number(file.size)) : '';
  return h(url ? 'a' : 'div', { class: 'file-card', 'data-testid': 'file', 'data-file': file.id, ...(url ? { href: url, target: '_blank', rel: 'noopener noreferrer' } : {}) },
    icon('file', 22), h('span', { class: 'file-text' }, h('strong', null, name), h('span', { class: 'muted' }, [file.pretty_type || file.filetype || file.mimetype, size].filter(Boolean).join(' · '))));
}

function sizeInWords(bytes) {
  if (bytes < 1000) return `${bytes} bytes`;
  return bytes < 1e6 ? `${Math.round(bytes / 1e3)} kB` : `${(bytes / 1e6).toFixed(1)} MB`;
}

function drawReactions(message, { people, react }) {
  if (!message.reactions?.length) return null;
  return h('div', { class: 'reactions', role: 'group', 'aria-label': 'Reactions' }, message.reactions.map((reaction) => {
    const [name, tone] = reaction.name.split('::skin-tone-');
    const mine = Boolean(reaction.users?.includes(people.me?.id));
    const count = reaction.count ?? reaction.users?.length ?? 1;
    const who = (reaction.users ?? []).map((id) => (id === people.me?.id ? 'you' : people.name(id)));
    return h('button', {
      type: 'button', class: mine ? 'reaction reaction-mine' : 'reaction', 'aria-pressed': String(mine), 'aria-label': `${name.replaceAll('_', ' ')}, ${count}`,
      'data-testid': 'reaction', 'data-name': reaction.name, 'data-key': `reaction/${message.ts}/${reaction.name}`, title: `${who.join(', ')} reacted with :${reaction.name}:`,
      onclick: () => react(reaction.name, mine),
    }, h('span', { class: 'emoji' }, emojiFor(name, tone) ?? `:${name}:`), h('span', null, String(count)));
  }));
}

function drawReplies(message, context) {
  if (!message.reply_count || context.inThread) return null;
  const { people } = context;
  const faces = (message.reply_users ?? []).slice(0, 4).map((id) => avatar(people.user(id) ?? { id, name: id }, 'tiny'));
  return h('a', { class: 'replies', href: context.threadLink, 'data-testid': 'replies', 'data-count': message.reply_count, 'data-key': `replies/${message.ts}` },
    h('span', { class: 'replies-faces' }, faces), h('span', { class: 'replies-count' }, message.reply_count === 1 ? '1 reply' : `${message.reply_count} replies`),
    message.latest_reply ? h('span', { class: 'muted' }, `Last reply ${ago(Number(message.latest_reply), now())}`) : null);
}

// drawStatus draws the assistant's status: "Countersign is thinking…".
export function drawStatus(status, people) {
  const name = people.name(people.bot?.id ?? '');
  const lines = status.loading_messages?.length ? status.loading_messages : [`${name} ${status.text}`];
  const text = h('span', { class: 'status-text' }, lines[Math.floor(now() / 3) % lines.length]);
  return h('div', { class: 'status', role: 'status', 'data-testid': 'status', 'data-lines': lines.length > 1 ? JSON.stringify(lines) : null }, h('span', { class: 'status-dots', 'aria-hidden': 'true' }, h('i'), h('i'), h('i')), text);
}

// stopButton is Slack's own button beside a streamed message.
function stopButton(stop) {
  return h('button', { type: 'button', class: 'button button-quiet stop', 'data-testid': 'stop', onclick: stop }, 'Stop');
}

// turnStatuses shows the next of several loading messages. The page calls turnStatuses every few seconds.
export function turnStatuses() {
  for (const status of document.querySelectorAll('.status[data-lines]')) {
    const lines = JSON.parse(status.dataset.lines);
    status.querySelector('.status-text').textContent = lines[Math.floor(now() / 3) % lines.length];
  }
}
