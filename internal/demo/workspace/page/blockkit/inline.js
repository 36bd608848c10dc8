// Draws inline nodes (mrkdwn.js, markdown.js, richtext.js).

import { h } from '../widgets/dom.js';
import { emojiFor } from '../emoji.js';
import { fromPermalink, routeTo } from '../route.js';
import { formatDate, fullTime, now } from '../time.js';

// Only these schemes become links. Addresses with other schemes, such as javascript:, are shown as text.
const safeAddress = /^(?:https?:|mailto:|tel:)/i;

export function safeUrl(url) {
  return safeAddress.test(String(url ?? '').trim()) ? String(url).trim() : null;
}

// renderInline draws nodes. people is the Directory of the person who looks. With opening, the first node begins a
// line.
export function renderInline(nodes, people, opening = true) {
  return nodes.map((node, i) => draw(node, people, i === 0 ? opening : nodes[i - 1].type === 'br'));
}

function draw(node, people, opening) {
  const children = () => renderInline(node.children ?? [], people, opening);
  switch (node.type) {
    case 'text': return node.text;
    case 'br': return h('br');
    case 'bold': return h('strong', null, children());
    case 'italic': return h('em', null, children());
    case 'strike': return h('s', null, children());
    case 'underline': return h('u', null, children());
    case 'code': return h('code', { class: 'code' }, children());
    case 'link': return link(node.url, children(), null, people);
    case 'user': return userMention(node, people);
    case 'channel': return channelMention(node, people);
    case 'group': return h('span', { class: mentionClass(people.inGroup(node.id)) }, '@' + (people.group(node.id)?.handle ?? stripAt(node.label) ?? 'group'));
    case 'team': return h('span', { class: 'mention' }, node.id === people.team?.id ? people.team.name : node.id);
    case 'broadcast': return h('span', { class: mentionClass(true) }, '@' + node.range);
    case 'date': return dateText(node, people, opening);
    case 'emoji': return emoji(node);
    case 'color': return h('span', { class: 'colour' }, swatch(node.value), node.value);
    default: return node.text ?? '';
  }
}

function stripAt(label) {
  return label ? label.replace(/^@/, '') : undefined;
}

function mentionClass(me) {
  return me ? 'mention mention-me' : 'mention';
}

export function link(url, children, props, people) {
  const href = safeUrl(url);
  if (!href) return h('span', null, children);
  // A link to a message of this workspace opens the message on this page, as the same person.
  const message = people?.me ? fromPermalink(href, location.origin) : null;
  if (message) return h('a', { class: 'link', href: routeTo({ user: people.me.id, ...message }), ...props }, children);
  return h('a', { class: 'link', href, target: '_blank', rel: 'noopener noreferrer', ...props }, children);
}

function userMention(node, people) {
  const user = people.user(node.id);
  const name = user ? people.name(node.id) : stripAt(node.label) || node.id;
  const props = { class: mentionClass(node.id === people.me?.id), 'data-user': node.id };
  if (!user) return h('span', props, '@' + name);
  return h('a', { ...props, href: people.linkTo(node.id), title: people.title(node.id) || null }, '@' + name);
}

function channelMention(node, people) {
  const channel = people.channel(node.id);
  const name = channel?.name ?? node.label ?? '';
  if (!name) return h('span', { class: 'mention' }, '#private-channel');
  return h('a', { class: 'mention', href: people.linkTo(node.id), 'data-channel-link': node.id }, '#' + name.replace(/^#/, ''));
}

function dateText(node, people, opening) {
  if (!Number.isFinite(node.ts)) return node.fallback;
  const text = formatDate(node.ts, node.format, now(), people.tz, opening);
  const time = h('time', { class: 'date', datetime: new Date(node.ts * 1000).toISOString(), title: `${fullTime(node.ts, now(), people.tz)} (${people.tz})` }, text);
  return node.url ? link(node.url, [time], null, people) : time;
}

function emoji(node) {
  const sign = emojiFor(node.name, node.tone);
  if (!sign) return `:${node.name}:`;
  return h('span', { class: 'emoji', role: 'img', 'aria-label': node.name.replaceAll('_', ' '), title: `:${node.name}:` }, sign);
}

function swatch(value) {
  const box = h('span', { class: 'swatch', 'aria-hidden': 'true' });
  if (/^#[0-9a-f]{3,8}$/i.test(value)) box.style.backgroundColor = value;
  return box;
}

// isJumbo returns whether a message consists only of a few emoji. The page draws these emoji large.
export function isJumbo(blocks) {
  const nodes = blocks.flatMap((block) => block.children ?? [{ type: 'other' }]).filter((node) => !(node.type === 'text' && !node.text.trim()));
  return nodes.length > 0 && nodes.length <= 6 && nodes.every((node) => node.type === 'emoji');
}
