// Converts typed names to the ids of Slack's messages.

const code = /```[\s\S]*?```|`[^`\n]+`/g;

// encodeMentions replaces known names outside of code by ids. The workspace escapes the rest, as Slack's clients do.
export function encodeMentions(text, people) {
  const names = nameTable(people);
  let out = '';
  let from = 0;
  for (const match of text.matchAll(code)) {
    out += encodePlain(text.slice(from, match.index), names) + match[0];
    from = match.index + match[0].length;
  }
  return out + encodePlain(text.slice(from), names);
}

function nameTable(people) {
  const names = [];
  for (const user of people.everyone) {
    for (const name of new Set([people.name(user.id), user.name])) if (name && !user.deleted) names.push([`@${name}`, `<@${user.id}>`]);
  }
  for (const group of people.groups) names.push([`@${group.handle}`, `<!subteam^${group.id}>`]);
  for (const range of ['here', 'channel', 'everyone']) names.push([`@${range}`, `<!${range}>`]);
  for (const channel of people.channels) if (!channel.is_im && !channel.is_mpim) names.push([`#${channel.name}`, `<#${channel.id}>`]);
  // The longest first: @Sam Rivera before @Sam.
  return names.sort(([a], [b]) => b.length - a.length);
}

function encodePlain(text, names) {
  const word = /[\p{L}\p{N}_]/u;
  let out = '';
  let i = 0;
  while (i < text.length) {
    const found = /[@#]/.test(text[i]) && !word.test(text[i - 1] ?? '')
      && names.find(([name]) => text.slice(i, i + name.length).toLowerCase() === name.toLowerCase() && !word.test(text[i + name.length] ?? ''));
    out += found ? found[1] : text[i];
    i += found ? found[0].length : 1;
  }
  return out;
}
