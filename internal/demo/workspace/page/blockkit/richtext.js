// Draws rich_text blocks, mrkdwn texts and markdown blocks: texts of more than one line.

import { h } from '../widgets/dom.js';
import { withEmoji } from '../emoji.js';
import { isJumbo, renderInline } from './inline.js';
import { parseMarkdown } from './markdown.js';
import { parseMrkdwn } from './mrkdwn.js';

// renderText draws a text object. plain_text stays unchanged, and mrkdwn is parsed.
export function renderText(object, people) {
  if (!object) return [];
  if (object.type === 'plain_text') {
    const text = object.emoji === false ? object.text : withEmoji(object.text ?? '');
    return [h('span', { class: 'plain' }, text)];
  }
  return renderMrkdwn(object.text, people, { verbatim: object.verbatim });
}

export function renderMrkdwn(text, people, options) {
  const blocks = parseMrkdwn(text, options);
  return blocks.map((block) => {
    if (block.type === 'pre') return preformatted(block.text);
    const children = renderInline(block.children, people);
    if (block.type === 'quote') return h('blockquote', { class: 'quote' }, children);
    return h('div', { class: options?.jumbo && isJumbo(blocks) ? 'lines jumbo' : 'lines' }, children);
  });
}

function preformatted(children) {
  return h('pre', { class: 'pre' }, children);
}

export function renderRichText(block, people) {
  return (block.elements ?? []).map((element) => {
    switch (element.type) {
      case 'rich_text_section': return h('div', { class: 'lines' }, richInline(element.elements, people));
      case 'rich_text_quote': return h('blockquote', { class: 'quote' }, richInline(element.elements, people));
      case 'rich_text_preformatted': return preformatted(richInline(element.elements, people));
      case 'rich_text_list': return richList(element, people);
      default: return h('div', { class: 'lines' }, richInline(element.elements ?? [], people));
    }
  });
}

function richList(element, people) {
  const indent = Math.min(Math.max(Number(element.indent) || 0, 0), 8);
  const props = { class: `list list-${element.style === 'ordered' ? 'ordered' : 'bullet'} list-indent-${indent}${element.border ? ' quote' : ''}` };
  if (element.style === 'ordered') props.start = (Number(element.offset) || 0) + 1;
  const items = (element.elements ?? []).map((item) => h('li', null, richInline(item.elements, people)));
  return h(element.style === 'ordered' ? 'ol' : 'ul', props, items);
}

// richInline converts rich_text elements to the inline nodes of mrkdwn.js and draws them.
function richInline(elements, people) {
  return renderInline((elements ?? []).flatMap(richNode), people);
}

function richNode(element) {
  switch (element.type) {
    case 'text': return styled(lines(element.text), element.style);
    case 'link': return styled([{ type: 'link', url: element.url, children: [{ type: 'text', text: element.text || element.url }] }], element.style);
    case 'user': return styled([{ type: 'user', id: element.user_id }], element.style);
    case 'channel': return styled([{ type: 'channel', id: element.channel_id }], element.style);
    case 'usergroup': return styled([{ type: 'group', id: element.usergroup_id }], element.style);
    case 'broadcast': return styled([{ type: 'broadcast', range: element.range }], element.style);
    case 'emoji': return emojiNode(element);
    case 'date': return styled([{ type: 'date', ts: Number(element.timestamp), format: element.format ?? '', url: element.url, fallback: element.fallback ?? '' }], element.style);
    case 'team': return styled([{ type: 'team', id: element.team_id }], element.style);
    case 'citation': return [{ type: 'link', url: element.url, children: [{ type: 'text', text: `[${element.index ?? ''}] ${element.text || element.url}` }] }];
    case 'color': return [{ type: 'color', value: String(element.value ?? '') }];
    default: return element.text ? lines(String(element.text)) : [];
  }
}

function emojiNode(element) {
  // unicode has the code points of an emoji. The page uses them if it does not have the emoji's name.
  const points = String(element.unicode ?? '').split('-').map((part) => Number.parseInt(part, 16));
  const known = withEmoji(`:${element.name}:`) !== `:${element.name}:`;
  if (!known && points.every((point) => point > 0 && point <= 0x10ffff)) return [{ type: 'text', text: String.fromCodePoint(...points) }];
  return [{ type: 'emoji', name: element.name, tone: element.skin_tone }];
}

function lines(text) {
  return String(text ?? '').split('\n').flatMap((line, i) => (i ? [{ type: 'br' }] : []).concat({ type: 'text', text: line }));
}

function styled(nodes, style) {
  if (!style) return nodes;
  let out = nodes;
  if (style.code) out = [{ type: 'code', children: out }];
  if (style.strike) out = [{ type: 'strike', children: out }];
  if (style.underline) out = [{ type: 'underline', children: out }];
  if (style.italic) out = [{ type: 'italic', children: out }];
  if (style.bold) out = [{ type: 'bold', children: out }];
  return out;
}

export function renderMarkdown(text, people) {
  return markdownBlocks(parseMarkdown(text), people);
}

function markdownBlocks(blocks, people) {
  return blocks.map((block) => {
    switch (block.type) {
      case 'heading': return h(`h${Math.min(block.level + 2, 6)}`, { class: `heading heading-${Math.min(block.level, 4)}` }, renderInline(block.children, people));
      case 'pre': return preformatted(block.text);
      case 'quote': return h('blockquote', { class: 'quote' }, markdownBlocks(block.blocks, people));
      case 'rule': return h('hr', { class: 'divider' });
      case 'list': return markdownList(block, people);
      case 'table': return drawTable(block.rows.map((row) => row.map((cell) => renderInline(cell, people))), block.align);
      default: return h('p', { class: 'paragraph' }, renderInline(block.children, people));
    }
  });
}

function markdownList(block, people) {
  const items = block.items.map((item) => h('li', { class: item.checked === null ? null : 'task' },
    item.checked === null ? null : h('span', { class: 'task-box', role: 'img', 'aria-label': item.checked ? 'done' : 'not done' }, item.checked ? '☑' : '☐'),
    renderInline(item.children, people), markdownBlocks(item.blocks, people)));
  return h(block.ordered ? 'ol' : 'ul', { class: `list list-${block.ordered ? 'ordered' : 'bullet'}`, start: block.ordered ? block.start : null }, items);
}

// drawTable draws rows of cells (lists of elements); the first row is the head.
export function drawTable(rows, align = []) {
  const row = (tag, scope) => (cells) => h('tr', null, cells.map((cell, i) => h(tag, { class: `align-${align[i] ?? 'left'}`, scope }, cell)));
  return h('div', { class: 'table-scroll', tabindex: '0', role: 'region', 'aria-label': 'Table' },
    h('table', { class: 'table' }, h('thead', null, row('th', 'col')(rows[0] ?? [])), h('tbody', null, rows.slice(1).map(row('td', null)))));
}
