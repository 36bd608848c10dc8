// Parses the typed text: a message, or a slash command.

import { encodeMentions } from './mentions.js';

// readOrder returns {text}, {command, text}, or {problem} with a hint. A slash after a space is part of a message.
export function readOrder(text, { commands, people, inThread }) {
  const match = /^(\/\S+)\s*([\s\S]*)$/.exec(text.trimEnd());
  if (!match) return { text: encodeMentions(text.trim(), people) };
  const [, name, rest] = match;
  const command = commands.find((one) => one.command === name);
  if (inThread) return { problem: `Slash commands don’t work inside threads. Write ${name} in the channel or in a DM.` };
  if (!command) {
    const known = commands.map((one) => one.command).join(', ');
    return { problem: `No app here knows ${name}. ${known ? `These work: ${known}. ` : ''}To send it as a message, put a space before the slash.` };
  }
  // encodeMentions also finds names with spaces. A command without should_escape keeps its text as it was typed.
  return { command: name, text: command.should_escape ? encodeMentions(rest, people) : rest };
}
