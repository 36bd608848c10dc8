// The markdown block: parses the common part of Markdown into a tree. The module uses no DOM, like mrkdwn.js, and has
// the same inline nodes.
//
// Block nodes: paragraph{children} · heading{level, children} · pre{text} · quote{blocks} · rule
//              list{ordered, start, items: [{checked, children, blocks}]} · table{align, rows: [[children]]}

import { emojiFor } from '../emoji.js';
import { parseInline, plain } from './mrkdwn.js';

const fenceLine = /^ {0,3}(```+|~~~+)\s*(\S*).*$/;
const headingLine = /^ {0,3}(#{1,6})\s+(.+?)\s*#*\s*$/;
const ruleLine = /^ {0,3}(?:(?:-\s*){3,}|(?:\*\s*){3,}|(?:_\s*){3,})$/;
const itemLine = /^(\s*)(?:([-*+])|(\d{1,9})[.)])\s+(.*)$/;
const quoteLine = /^ {0,3}(?:>|&gt;) ?(.*)$/;
const tableRule = /^\s*\|?\s*:?-+:?\s*(?:\|\s*:?-+:?\s*)*\|?\s*$/;

export function parseMarkdown(source) {
  return parseBlocks(String(source ?? '').replace(/\r\n?/g, '\n').split('\n'));
}

function parseBlocks(lines) {
  const blocks = [];
  let i = 0;
  while (i < lines.length) {
    const line = lines[i];
    let match;
    if (!line.trim()) {
      i += 1;
    } else if ((match = fenceLine.exec(line))) {
      const end = lines.findIndex((other, j) => j > i && other.trim().startsWith(match[1]));
      const stop = end < 0 ? lines.length : end;
      blocks.push({ type: 'pre', text: plain(lines.slice(i + 1, stop).join('\n')) });
      i = stop + 1;
    } else if ((match = headingLine.exec(line))) {
      blocks.push({ type: 'heading', level: match[1].length, children: parseMarkdownInline(match[2]) });
      i += 1;
    } else if (ruleLine.test(line)) {
      blocks.push({ type: 'rule' });
      i += 1;
    } else if (quoteLine.test(line)) {
      const inner = [];
      while (i < lines.length && (match = quoteLine.exec(lines[i]))) {
        inner.push(match[1]);
        i += 1;
      }
      blocks.push({ type: 'quote', blocks: parseBlocks(inner) });
    } else if (itemLine.test(line)) {
      i = parseList(lines, i, blocks);
    } else if (line.includes('|') && tableRule.test(lines[i + 1] ?? '') && cells(line).length === cells(lines[i + 1]).length) {
      i = parseTable(lines, i, blocks);
    } else {
      i = parseParagraph(lines, i, blocks);
    }
  }
  return blocks;
}

function parseParagraph(lines, from, blocks) {
  let i = from;
  const part = [];
  while (i < lines.length && lines[i].trim() && (i === from || !startsBlock(lines[i]))) {
    part.push(lines[i].trim());
    i += 1;
  }
  blocks.push({ type: 'paragraph', children: inlineLines(part) });
  return i;
}

function startsBlock(line) {
  return fenceLine.test(line) || headingLine.test(line) || ruleLine.test(line) || quoteLine.test(line) || itemLine.test(line);
}

// parseList reads one list. Lines indented under an item are the item's own blocks.
function parseList(lines, from, blocks) {
  const first = itemLine.exec(lines[from]);
  const indent = first[1].length;
  const list = { type: 'list', ordered: Boolean(first[3]), start: Number(first[3] ?? 1), items: [] };
  let i = from;
  while (i < lines.length) {
    const match = itemLine.exec(lines[i]);
    if (!match || match[1].length > indent + 1 || match[1].length < indent || Boolean(match[3]) !== list.ordered) break;
    const own = [match[4]];
    const nested = [];
    i += 1;
    while (i < lines.length) {
      const blank = !lines[i].trim();
      const deeper = lines[i].search(/\S/) >= indent + 2;
      if (blank && !((lines[i + 1] ?? '').search(/\S/) >= indent + 2)) break;
      if (!blank && !deeper) {
        // A line without indentation still belongs to the paragraph before it.
        if (startsBlock(lines[i]) || nested.length) break;
        own.push(lines[i].trim());
      } else if (nested.length || blank || startsBlock(lines[i].slice(indent + 2))) {
        nested.push(lines[i].slice(indent + 2));
      } else {
        own.push(lines[i].trim());
      }
      i += 1;
    }
    const task = /^\[([ xX])\]\s+/.exec(own[0]);
    if (task) own[0] = own[0].slice(task[0].length);
    list.items.push({ checked: task ? task[1] !== ' ' : null, children: inlineLines(own), blocks: parseBlocks(nested) });
    // One blank line between items doesn't end the list.
    if (i < lines.length && !lines[i].trim() && itemLine.exec(lines[i + 1] ?? '')?.[1].length === indent) i += 1;
  }
  blocks.push(list);
  return i;
}

function cells(line) {
  return line.trim().replace(/^\|/, '').replace(/\|$/, '').split(/(?<!\\)\|/).map((cell) => cell.trim().replace(/\\\|/g, '|'));
}

function parseTable(lines, from, blocks) {
  const align = cells(lines[from + 1]).map((cell) => (/^:.*:$/.test(cell) ? 'center' : /:$/.test(cell) ? 'right' : 'left'));
  const rows = [cells(lines[from])];
  let i = from + 2;
  while (i < lines.length && lines[i].trim() && lines[i].includes('|')) {
    rows.push(cells(lines[i]).slice(0, align.length));
    i += 1;
  }
  blocks.push({ type: 'table', align, rows: rows.map((row) => row.map(parseMarkdownInline)) });
  return i;
}

function inlineLines(lines) {
  return lines.flatMap((line, i) => (i ? [{ type: 'br' }] : []).concat(parseMarkdownInline(line)));
}

// The parser tries these in order at each position. If none matches, the character is text.
const rules = [
  [/\\([\\`*_{}[\]()#+\-.!|~<>])/y, (m) => ({ type: 'text', text: m[1] })],
  [/(`+)(.+?)\1(?!`)/y, (m) => ({ type: 'code', children: [{ type: 'text', text: plain(m[2].trim() || m[2]) }] })],
  [/!?\[([^\]\n]*)\]\((\S+?)(?:\s+"[^"]*")?\)/y, (m) => markdownLink(m[2], m[1])],
  [/\*\*(?=\S)(.+?\S|\S)\*\*(?!\*)/y, (m) => ({ type: 'bold', children: parseMarkdownInline(m[1]) })],
  [/__(?=\S)(.+?\S|\S)__(?!\w)/y, (m) => ({ type: 'bold', children: parseMarkdownInline(m[1]) }), true],
  [/\*(?=[^\s*])(.*?[^\s*])\*(?!\*)/y, (m) => ({ type: 'italic', children: parseMarkdownInline(m[1]) })],
  [/_(?=[^\s_])(.*?[^\s_])_(?!\w)/y, (m) => ({ type: 'italic', children: parseMarkdownInline(m[1]) }), true],
  [/~~(?=\S)(.+?)~~/y, (m) => ({ type: 'strike', children: parseMarkdownInline(m[1]) })],
  [/<[^<>\n]+>/y, (m) => parseInline(m[0], true)[0]],
  [/https?:\/\/[^\s<>|`]*[^\s<>|`.,;:!?'")\]*_~]/y, (m) => markdownLink(m[0], m[0])],
  [/:([a-z0-9_+'-]+)(?:::skin-tone-([2-6]))?:/y, (m) => (emojiFor(m[1]) ? { type: 'emoji', name: m[1], tone: m[2] } : null)],
];

export function parseMarkdownInline(text) {
  const out = [];
  let literal = '';
  const flush = () => {
    if (literal) out.push({ type: 'text', text: plain(literal) });
    literal = '';
  };
  let i = 0;
  while (i < text.length) {
    const found = ruleAt(text, i);
    if (found) {
      flush();
      out.push(found.node);
      i += found.length;
    } else {
      literal += text[i];
      i += 1;
    }
  }
  flush();
  return out;
}

function ruleAt(text, i) {
  for (const [pattern, make, notInWord] of rules) {
    if (notInWord && /[\p{L}\p{N}_]/u.test(text[i - 1] ?? '')) continue;
    pattern.lastIndex = i;
    const match = pattern.exec(text);
    const node = match && make(match);
    if (node) return { node, length: match[0].length };
  }
  return null;
}

function markdownLink(target, label) {
  if (!/^(?:https?:\/\/|mailto:|tel:)/i.test(target)) return null;
  return { type: 'link', url: plain(target), children: label === target ? [{ type: 'text', text: plain(label) }] : parseMarkdownInline(label) };
}
