import assert from 'node:assert/strict';
import { test } from 'node:test';
import { parseMarkdown, parseMarkdownInline } from '../page/blockkit/markdown.js';

function show(nodes) {
  return nodes.map((node) => {
    const inside = node.children ? show(node.children) : '';
    if (node.type === 'text') return node.text;
    if (node.type === 'br') return '¶';
    if (node.type === 'link') return `<link ${node.url}>${inside}</link>`;
    if (node.type === 'user') return `<user ${node.id}>`;
    if (node.type === 'emoji') return `<emoji ${node.name}>`;
    return `<${node.type}>${inside}</${node.type}>`;
  }).join('');
}

function showBlocks(list) {
  return list.map((block) => {
    switch (block.type) {
      case 'heading': return `[h${block.level} ${show(block.children)}]`;
      case 'paragraph': return `[p ${show(block.children)}]`;
      case 'pre': return `[pre ${JSON.stringify(block.text)}]`;
      case 'quote': return `[quote ${showBlocks(block.blocks)}]`;
      case 'list': return `[${block.ordered ? `ol${block.start}` : 'ul'} ${block.items.map((item) => `(${item.checked === null ? '' : item.checked ? 'x ' : '- '}${show(item.children)}${showBlocks(item.blocks)})`).join('')}]`;
      case 'table': return `[table ${block.align.join()} ${block.rows.map((row) => row.map(show).join('|')).join(' / ')}]`;
      default: return `[${block.type}]`;
    }
  }).join('');
}

const inline = [
  ['**bold** *it* _it_ ~~gone~~ `a * b`', '<bold>bold</bold> <italic>it</italic> <italic>it</italic> <strike>gone</strike> <code>a * b</code>'],
  ['***both***', '<bold><italic>both</italic></bold>'],
  ['2 * 3 * 4 and snake_case_name', '2 * 3 * 4 and snake_case_name'],
  ['[a **b**](https://x.example)', '<link https://x.example>a <bold>b</bold></link>'],
  ['[no](javascript:alert(1))', '[no](javascript:alert(1))'],
  ['\\*not\\* <b>html</b>', '*not* <b>html</b>'],
  ['<@U1> :tada: https://x.example/y.', '<user U1> <emoji tada> <link https://x.example/y>https://x.example/y</link>.'],
];
for (const [source, want] of inline) test(`inline ${source}`, () => assert.equal(show(parseMarkdownInline(source)), want));

const blocks = [
  ['# One\ntext\nmore\n\nnext', '[h1 One][p text¶more][p next]'],
  ['- a\n- b\n  - c\n- d', '[ul (a)(b[ul (c)])(d)]'],
  ['3. a\n4. b\n\n   more', '[ol3 (a)(b[p more])]'],
  ['- [x] done\n- [ ] open', '[ul (x done)(- open)]'],
  ['> a\n> - b', '[quote [p a][ul (b)]]'],
  ['```go\nx := "**"\n```\nafter', '[pre "x := \\"**\\""][p after]'],
  ['```\nnever closed', '[pre "never closed"]'],
  ['| a | b |\n|:--|--:|\n| 1 | **2** |\n\nx', '[table left,right a|b / 1|<bold>2</bold>][p x]'],
  ['a\n\n---\n\nb', '[p a][rule][p b]'],
  ['a | b\nc', '[p a | b¶c]'],
  ['', ''],
];
for (const [source, want] of blocks) test(`blocks ${JSON.stringify(source)}`, () => assert.equal(showBlocks(parseMarkdown(source)), want));

test('hostile input ends quickly', () => {
  const before = process.cpuUsage();
  parseMarkdown('*a **b '.repeat(500));
  parseMarkdown('['.repeat(4000));
  parseMarkdown('- '.repeat(300));
  parseMarkdown('> '.repeat(300) + 'x');
  assert.ok(process.cpuUsage(before).user < 3_000_000); // microseconds of processor time
});
