// The unsent values of a view. When the app updates the view, a field with the same block_id and action_id keeps its
// value, as in Slack.

export class Form {
  // mended gets the id of a block whose value has changed, so that the caller can remove the block's error.
  constructor(mended = () => {}) {
    this.mended = mended;
    this.values = new Map();
    this.errors = new Map();
    this.labels = new Map();
    this.sent = new Map();
  }

  // value returns the current value of an element: the person's value, or the app's initial value.
  value(block, element) {
    const key = fieldKey(block, element);
    return this.values.has(key) ? this.values.get(key) : initialValue(element);
  }

  set(block, element, value) {
    this.values.set(fieldKey(block, element), value);
    if (this.errors.delete(block.block_id)) this.mended(block.block_id);
  }

  // collect returns all fields of a view as the API expects them: {block_id: {action_id: string or list}}.
  collect(blocks) {
    const out = {};
    for (const { block, element } of fields(blocks)) {
      let value = this.value(block, element);
      // A field that the person emptied is sent as ''. A field that was never set is left out.
      if (value === null && this.values.has(fieldKey(block, element))) value = '';
      if (value === null || value === undefined) continue;
      out[block.block_id] ??= {};
      out[block.block_id][element.action_id] = value;
    }
    return out;
  }

  // unsent returns the values of input blocks that the workspace does not have yet. The page sends these values before
  // a click, because the app gets a click together with the state of all inputs.
  unsent(blocks) {
    const out = [];
    for (const { block, element } of fields(blocks)) {
      const key = fieldKey(block, element);
      if (block.type !== 'input' || block.dispatch_action || !this.values.has(key)) continue;
      const value = this.values.get(key) ?? '';
      if (this.sent.get(key) === JSON.stringify(value)) continue;
      this.sent.set(key, JSON.stringify(value));
      out.push({ block, element, value });
    }
    return out;
  }

  // check makes the checks that Slack makes before it sends a form to the app. check returns whether the form is valid.
  check(blocks) {
    this.errors.clear();
    for (const { block, element } of fields(blocks)) {
      if (block.type !== 'input') continue;
      const problem = problemOf(block, element, this.value(block, element));
      if (problem) this.errors.set(block.block_id, problem);
    }
    return this.errors.size === 0;
  }
}

function fieldKey(block, element) {
  return `${block.block_id ?? ''}\u0000${element.action_id ?? ''}`;
}

// fields returns the elements of a view that have a value.
export function fields(blocks) {
  const out = [];
  for (const block of blocks ?? []) {
    const elements = block.type === 'input' ? [block.element]
      : block.type === 'actions' ? block.elements ?? []
      : block.type === 'section' && block.accessory ? [block.accessory] : [];
    for (const element of elements) if (element && element.type in initials) out.push({ block, element });
  }
  return out;
}

const optionValue = (element) => element.initial_option?.value ?? null;
const optionValues = (element) => (element.initial_options ?? []).map((option) => option.value);
const text = (element) => element.initial_value ?? '';

const initials = {
  plain_text_input: text,
  email_text_input: text,
  url_text_input: text,
  number_input: text,
  rich_text_input: (element) => richToText(element.initial_value),
  datepicker: (element) => element.initial_date ?? '',
  timepicker: (element) => element.initial_time ?? '',
  datetimepicker: (element) => (element.initial_date_time ? String(element.initial_date_time) : ''),
  static_select: optionValue,
  external_select: optionValue,
  radio_buttons: optionValue,
  users_select: (element) => element.initial_user ?? null,
  conversations_select: (element) => element.initial_conversation ?? null,
  channels_select: (element) => element.initial_channel ?? null,
  checkboxes: optionValues,
  multi_static_select: optionValues,
  multi_external_select: optionValues,
  multi_users_select: (element) => element.initial_users ?? [],
  multi_conversations_select: (element) => element.initial_conversations ?? [],
  multi_channels_select: (element) => element.initial_channels ?? [],
};

export function initialValue(element) {
  return initials[element.type]?.(element) ?? null;
}

function richToText(rich) {
  const parts = [];
  const walk = (node) => {
    if (!node) return;
    if (typeof node.text === 'string') parts.push(node.text);
    for (const child of node.elements ?? []) walk(child);
    if (/^rich_text_/.test(node.type) && node.type !== 'rich_text_list') parts.push('\n');
  };
  walk(rich);
  return parts.join('').trim();
}

function isEmpty(value) {
  return value === null || value === undefined || (Array.isArray(value) ? value.length === 0 : String(value).trim() === '');
}

function problemOf(block, element, value) {
  if (isEmpty(value)) return block.optional ? '' : 'Please fill this in: it is required.';
  switch (element.type) {
    case 'number_input': return numberProblem(element, String(value).trim());
    case 'email_text_input': return /^[^\s@]+@[^\s@]+\.[^\s@]+$/.test(value.trim()) ? '' : 'Please write an e-mail address, such as sam@example.com.';
    case 'url_text_input': return /^https?:\/\/\S+$/i.test(value.trim()) ? '' : 'Please write a web address that begins with https://.';
    case 'plain_text_input': return lengthProblem(element, value);
    default:
      if (Array.isArray(value) && element.max_selected_items && value.length > element.max_selected_items) return `Please choose no more than ${element.max_selected_items}.`;
      return '';
  }
}

function numberProblem(element, value) {
  if (!/^[+-]?(\d+\.?\d*|\.\d+)$/.test(value)) return 'Please write a number, such as 49.99.';
  if (!element.is_decimal_allowed && !/^[+-]?\d+$/.test(value)) return 'Please write a whole number.';
  const { min_value: min, max_value: max } = element;
  if (!isEmpty(min) && Number(value) < Number(min)) return `Please write ${min} or more.`;
  if (!isEmpty(max) && Number(value) > Number(max)) return `Please write ${max} or less.`;
  return '';
}

function lengthProblem(element, value) {
  const length = [...value].length;
  const max = element.max_length ?? 3000;
  if (element.min_length && length < element.min_length) return `Please write at least ${element.min_length} characters.`;
  return length > max ? `Please write no more than ${max.toLocaleString('en-US')} characters; these are ${length.toLocaleString('en-US')}.` : '';
}
