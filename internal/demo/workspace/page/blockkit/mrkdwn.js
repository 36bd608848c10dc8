// Parses Slack's mrkdwn into a tree. The module uses no DOM, so that tests need no browser.
//
// Block nodes:  {type: 'text-lines', children} · {type: 'quote', children} · {type: 'pre', text}
// Inline nodes: text, br, bold, italic, strike, code, link{url, children}, user{id, label}, channel{id, label},
//               group{id, label}, broadcast{range}, date{ts, format, url, fallback}, emoji{name, tone}

import { emojiFor } from '../emoji.js';

// parseMrkdwn parses a mrkdwn text. With verbatim, bare addresses do not become links.
export function parseMrkdwn(source, { verbatim = false } = {}) {
  const blocks = [];
  const text = String(source ?? '').replace(/\r\n?/g, '\n');
  const fence = /```([\s\S]+?)```/g;
  let from = 0;
  for (let match = fence.exec(text); match; match = fence.exec(text)) {
    pushLines(blocks, text.slice(from, match.index).replace(/\n$/, ''), verbatim);
    blocks.push({ type: 'pre', text: plain(match[1].replace(/^\n/, '').replace(/\n$/, '')) });
    from = match.index + match[0].length;
    if (text[from] === '\n') from += 1;
  }
  pushLines(blocks, text.slice(from), verbatim);
  return blocks;
}

const quoteMark = /^(?:&gt;|>)[ ]?/;

function pushLines(blocks, text, verbatim) {
  if (!text) return;
  const lines = text.split('\n');
  for (let i = 0; i < lines.length;) {
    const quoted = quoteMark.test(lines[i]);
    // ">>>" quotes this line and all later lines.
    const rest = /^(?:&gt;|>){3}/.test(lines[i]);
    const start = i;
    if (rest) i = lines.length;
    else while (i < lines.length && quoteMark.test(lines[i]) === quoted && !(i > start && /^(?:&gt;|>){3}/.test(lines[i]))) i += 1;
    const part = lines.slice(start, i);
    if (rest) part[0] = part[0].replace(/^(?:&gt;|>){3}[ ]?/, '');
    const body = quoted && !rest ? part.map((line) => line.replace(quoteMark, '')) : part;
    blocks.push({ type: quoted ? 'quote' : 'text-lines', children: parseInlineLines(body, verbatim) });
  }
}

function parseInlineLines(lines, verbatim) {
  return lines.flatMap((line, i) => (i ? [{ type: 'br' }] : []).concat(parseInline(line, verbatim)));
}

const marks = { '*': 'bold', _: 'italic', '~': 'strike' };
const emojiHere = /:([a-z0-9_+'-]+)(?:::skin-tone-([2-6]))?:/y;
const angleHere = /<([^<>\n]+)>/y;
const codeHere = /`([^`\n]+)`/y;
const addressHere = /https?:\/\/[^\s<>|`]+/y;
const wordChar = /[\p{L}\p{N}_]/u;

function at(pattern, text, index) {
  pattern.lastIndex = index;
  return pattern.exec(text);
}

function isWord(char) {
  return char !== undefined && wordChar.test(char);
}

// parseInline parses one line. As in Slack, a mark opens before a word and closes after a word. So 2*3*4 and
// snake_case_name stay unchanged.
export function parseInline(text, verbatim = false) {
  const out = [];
  let literal = '';
  const flush = () => {
    if (literal) out.push({ type: 'text', text: plain(literal) });
    literal = '';
  };
  const push = (node, length) => {
    flush();
    out.push(node);
    i += length;
  };
  let i = 0;
  while (i < text.length) {
    const char = text[i];
    let match;
    if (char === '`' && (match = at(codeHere, text, i))) {
      push({ type: 'code', children: codeChildren(match[1]) }, match[0].length);
    } else if (char === '<' && (match = at(angleHere, text, i)) && angle(match[1])) {
      push(angle(match[1]), match[0].length);
    } else if (char === ':' && (match = at(emojiHere, text, i)) && emojiFor(match[1])) {
      push({ type: 'emoji', name: match[1], tone: match[2] }, match[0].length);
    } else if (!verbatim && char === 'h' && !isWord(text[i - 1]) && (match = at(addressHere, text, i))) {
      const url = match[0].replace(/(?:[.,;:!?'")\]]|&gt;|\*|_|~)+$/, '');
      push({ type: 'link', url: plain(url), children: [{ type: 'text', text: plain(url) }] }, url.length);
    } else if (marks[char]) {
      const end = closing(text, i);
      if (end > 0) push({ type: marks[char], children: parseInline(text.slice(i + 1, end), verbatim) }, end + 1 - i);
      else {
        literal += char;
        i += 1;
      }
    } else {
      literal += char;
      i += 1;
    }
  }
  flush();
  return out;
}

// closing returns the index of the mark that closes the mark at index, or -1.
function closing(text, index) {
  const mark = text[index];
  if (isWord(text[index - 1]) || text[index - 1] === mark) return -1;
  const next = text[index + 1];
  if (next === undefined || /\s/.test(next) || next === mark) return -1;
  for (let j = index + 1; j < text.length; j += 1) {
    // Marks in code and in links don't close this mark.
    const skip = (text[j] === '`' && at(codeHere, text, j)) || (text[j] === '<' && at(angleHere, text, j));
    if (skip) j += skip[0].length - 1;
    else if (text[j] === mark && !/\s/.test(text[j - 1]) && !isWord(text[j + 1]) && text[j + 1] !== mark) return j;
  }
  return -1;
}

// In code, Slack keeps links and shows everything else as text.
function codeChildren(source) {
  const out = [];
  let from = 0;
  for (const match of source.matchAll(/<([^<>\n]+)>/g)) {
    const node = angle(match[1]);
    if (node?.type !== 'link') continue;
    if (match.index > from) out.push({ type: 'text', text: plain(source.slice(from, match.index)) });
    out.push(node);
    from = match.index + match[0].length;
  }
  if (from < source.length) out.push({ type: 'text', text: plain(source.slice(from)) });
  return out;
}

// angle parses the text between < and >. angle returns null if Slack would show the text as it was typed.
function angle(inner) {
  const bar = inner.indexOf('|');
  const target = bar < 0 ? inner : inner.slice(0, bar);
  const label = bar < 0 ? '' : plain(inner.slice(bar + 1));
  let match;
  if ((match = /^@([A-Z0-9]+)$/.exec(target))) return { type: 'user', id: match[1], label };
  if ((match = /^#([A-Z0-9]+)$/.exec(target))) return { type: 'channel', id: match[1], label };
  if ((match = /^!subteam\^([A-Z0-9]+)$/.exec(target))) return { type: 'group', id: match[1], label };
  if ((match = /^!(here|channel|everyone)$/.exec(target))) return { type: 'broadcast', range: match[1] };
  if ((match = /^!date\^(-?\d+)\^([^^]+)(?:\^(.+))?$/.exec(target))) {
    return { type: 'date', ts: Number(match[1]), format: plain(match[2]), url: match[3] ? plain(match[3]) : '', fallback: label };
  }
  if (/^!/.test(target)) return label ? { type: 'text', text: label } : null;
  if (!/^(?:https?:\/\/|mailto:|tel:)/i.test(target)) return null;
  const url = plain(target);
  return { type: 'link', url, children: [{ type: 'text', text: label || url.replace(/^(?:mailto|tel):/i, '') }] };
}

const entities = { '&amp;': '&', '&lt;': '<', '&gt;': '>' };

// plain reverses Slack's three escapes, once.
export function plain(text) {
  return text.replace(/&(?:amp|lt|gt);/g, (entity) => entities[entity]);
}
