import assert from 'node:assert/strict';
import { test } from 'node:test';
import { parseInline, parseMrkdwn } from '../page/blockkit/mrkdwn.js';

// show writes a tree as short text: *bold* becomes <bold>bold</bold>.
function show(nodes) {
  return nodes.map((node) => {
    const inside = node.children ? show(node.children) : node.text ?? '';
    switch (node.type) {
      case 'text': return node.text;
      case 'br': return '¶';
      case 'link': return `<link ${node.url}>${inside}</link>`;
      case 'user': case 'channel': case 'group': return `<${node.type} ${node.id}${node.label ? ` ${node.label}` : ''}>`;
      case 'broadcast': return `<${node.range}>`;
      case 'emoji': return `<emoji ${node.name}${node.tone ? ` ${node.tone}` : ''}>`;
      case 'date': return `<date ${node.ts} ${node.format} ${node.fallback}>`;
      default: return `<${node.type}>${inside}</${node.type}>`;
    }
  }).join('');
}

const inline = [
  ['nothing special', 'nothing special'],
  ['*bold* _italic_ ~strike~ `code`', '<bold>bold</bold> <italic>italic</italic> <strike>strike</strike> <code>code</code>'],
  ['*bold _and italic_*', '<bold>bold <italic>and italic</italic></bold>'],
  // a mark opens only at the beginning of a word, and closes only at the end of a word
  ['2*3*4 snake_case_name a~b~c', '2*3*4 snake_case_name a~b~c'],
  ['* not bold * and *not bold', '* not bold * and *not bold'],
  ['(*bold*), "_it_"!', '(<bold>bold</bold>), "<italic>it</italic>"!'],
  ['**not markdown**', '**not markdown**'],
  ['_a_b_', '<italic>a_b</italic>'],
  ['*`a*b`*', '<bold><code>a*b</code></bold>'],
  ['`*not bold* :tada: &lt;b&gt;`', '<code>*not bold* :tada: <b></code>'],
  ['``', '``'],
  // escapes are reversed only once
  ['&lt;b&gt; &amp;lt; &quot;', '<b> &lt; &quot;'],
  ['<@U123> <@W1|ada> <#C1|general> <#C1>', '<user U123> <user W1 ada> <channel C1 general> <channel C1>'],
  ['<!here> <!channel> <!everyone> <!subteam^S1|@support>', '<here> <channel> <everyone> <group S1 @support>'],
  ['<!unknown|what it says>', 'what it says'],
  ['<https://a.example/?q=1&amp;r=2|a &amp; b>', '<link https://a.example/?q=1&r=2>a & b</link>'],
  ['<mailto:jo@x.example|Jo> <tel:+123>', '<link mailto:jo@x.example>Jo</link> <link tel:+123>+123</link>'],
  // syntax that Slack does not support stays text
  ['<script>alert(1)</script>', '<script>alert(1)</script>'],
  ['<javascript:alert(1)|click>', '<javascript:alert(1)|click>'],
  ['<data:text/html,x|click>', '<data:text/html,x|click>'],
  ['<@not a user>', '<@not a user>'],
  ['see https://x.example/a_b_c. And (https://y.example/).', 'see <link https://x.example/a_b_c>https://x.example/a_b_c</link>. And (<link https://y.example/>https://y.example/</link>).'],
  ['*https://x.example*', '<bold><link https://x.example>https://x.example</link></bold>'],
  ['xhttps://x.example', 'xhttps://x.example'],
  [':tada: :no_such_emoji: 10:30:45 :+1::skin-tone-3:', '<emoji tada> :no_such_emoji: 10:30:45 <emoji +1 3>'],
  ['<!date^1700000000^{date_short_pretty} at {time}|then>', '<date 1700000000 {date_short_pretty} at {time} then>'],
  ['<!date^soon^{date}|then>', 'then'],
  ['*ä* ja*nein*ja *🎉*', '<bold>ä</bold> ja*nein*ja <bold>🎉</bold>'],
];

for (const [source, want] of inline) {
  test(`inline ${source}`, () => assert.equal(show(parseInline(source)), want));
}

test('verbatim leaves bare addresses alone', () => {
  assert.equal(show(parseInline('https://x.example <https://y.example>', true)), 'https://x.example <link https://y.example>https://y.example</link>');
});

function showBlocks(source) {
  return parseMrkdwn(source).map((block) => `[${block.type} ${block.type === 'pre' ? JSON.stringify(block.text) : show(block.children)}]`).join('');
}

const blocks = [
  ['a\nb\n\nc', '[text-lines a¶b¶¶c]'],
  ['&gt; one\n&gt;two\nthree', '[quote one¶two][text-lines three]'],
  ['> raw mark', '[quote raw mark]'],
  ['before\n&gt;&gt;&gt; all\nof this', '[text-lines before][quote all¶of this]'],
  ['```\nif a &lt; b {\n  *x*\n}\n```', '[pre "if a < b {\\n  *x*\\n}"]'],
  ['see ```x``` there', '[text-lines see ][pre "x"][text-lines  there]'],
  ['```never closed *b*', '[text-lines ```never closed <bold>b</bold>]'],
  ['a &gt; b', '[text-lines a > b]'],
  ['*not\nover lines*', '[text-lines *not¶over lines*]'],
  ['', ''],
];

for (const [source, want] of blocks) {
  test(`blocks ${JSON.stringify(source)}`, () => assert.equal(showBlocks(source), want));
}

test('hostile nesting ends quickly', () => {
  const before = process.cpuUsage();
  parseMrkdwn('*_~'.repeat(1500));
  parseMrkdwn('<'.repeat(6000));
  parseMrkdwn('`'.repeat(6001));
  parseMrkdwn('*a '.repeat(2000));
  assert.ok(process.cpuUsage(before).user < 2_000_000); // microseconds of processor time
});
