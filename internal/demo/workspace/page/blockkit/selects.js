// Draws Block Kit's select menus with the combobox of select.js.

import { changed, markers, plainOf } from './action.js';
import { initialValue } from './form.js';
import { avatar } from '../widgets/avatar.js';
import { fullNameOf, kindOf, titleOf } from '../directory.js';
import { inWords } from '../api.js';
import { createSelect } from './select.js';

const sources = {
  static_select: staticOptions, multi_static_select: staticOptions,
  external_select: externalOptions, multi_external_select: externalOptions,
  users_select: userOptions, multi_users_select: userOptions,
  channels_select: channelOptions, multi_channels_select: channelOptions,
  conversations_select: conversationOptions, multi_conversations_select: conversationOptions,
};

// drawSelect returns null for an element that is not a select.
export function drawSelect(element, block, surface, labelling) {
  const source = sources[element.type];
  if (!source) return null;
  const multiple = element.type.startsWith('multi_');
  const value = surface.form ? surface.form.value(block, element) : initialValue(element);
  const labels = surface.form?.labels ?? new Map();
  for (const option of [element.initial_option, ...(element.initial_options ?? [])]) if (option) labels.set(option.value, plainOf(option.text));

  const find = async (text) => {
    const options = await source(element, block, surface, text);
    for (const option of options) labels.set(option.value, option.text);
    return options;
  };
  // If the options come from the element itself or from the workspace, their texts are known without a search.
  if (source !== externalOptions) for (const option of source(element, block, surface, '')) labels.set(option.value, option.text);

  return createSelect({
    label: labelling.label ?? (plainOf(element.placeholder) || 'Choose'),
    placeholder: plainOf(element.placeholder) || (multiple ? 'Choose some' : 'Choose one'),
    multiple,
    max: element.max_selected_items,
    chosen: multiple ? value ?? [] : value ? [value] : [],
    find: source === externalOptions ? find : (text) => source(element, block, surface, text),
    minQuery: source === externalOptions ? element.min_query_length ?? 3 : 0,
    textOf: (chosen) => labels.get(chosen) ?? chosen,
    onchange: (values) => changed(surface, block, element, multiple ? values : values[0] ?? null, null),
    attributes: { ...markers(block, element), 'aria-invalid': labelling.invalid || null },
    clearable: Boolean(block.optional),
    describedBy: labelling.describedBy,
  });
}

const has = (text, ...where) => where.some((one) => String(one ?? '').toLowerCase().includes(text.trim().toLowerCase()));

function flat(element) {
  if (!element.option_groups?.length) return (element.options ?? []).map((option) => asOption(option));
  return element.option_groups.flatMap((group) => (group.options ?? []).map((option) => asOption(option, plainOf(group.label))));
}

function asOption(option, group) {
  return { value: option.value, text: plainOf(option.text), description: plainOf(option.description), group };
}

function staticOptions(element, block, surface, text) {
  return flat(element).filter((option) => has(text, option.text));
}

async function externalOptions(element, block, surface, text) {
  try {
    return flat(await surface.suggest(block, element, text));
  } catch (error) {
    error.sentence = inWords(error, surface.people.name(surface.people.bot?.id));
    throw error;
  }
}

function userOptions(element, block, surface, text) {
  return surface.people.everyone.filter((user) => !user.deleted && has(text, surface.people.name(user.id), fullNameOf(user), user.name))
    .map((user) => ({ value: user.id, text: surface.people.name(user.id), description: [fullNameOf(user), user.is_bot ? 'App' : titleOf(user) || kindOf(user)].filter((one) => one && one !== surface.people.name(user.id)).join(' · '), face: () => avatar(user, 'small') }));
}

function channelOptions(element, block, surface, text) {
  return surface.people.channels.filter((channel) => !channel.is_im && !channel.is_mpim && !channel.is_private && has(text, channel.name))
    .map((channel) => ({ value: channel.id, text: '#' + channel.name }));
}

function conversationOptions(element, block, surface, text) {
  const include = element.filter?.include;
  const kind = (channel) => (channel.is_im ? 'im' : channel.is_mpim ? 'mpim' : channel.is_private ? 'private' : 'public');
  return surface.people.channels
    .filter((channel) => (!include?.length || include.includes(kind(channel))) && has(text, surface.people.channelName(channel)))
    .map((channel) => ({ value: channel.id, text: (channel.is_im ? '' : '#') + surface.people.channelName(channel) }));
}
