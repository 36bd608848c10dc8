// Text fields, pickers, checkboxes and radio buttons.

import { h, uid } from '../widgets/dom.js';
import { changed, markers, plainOf } from './action.js';
import { initialValue } from './form.js';
import { renderText } from './richtext.js';
import { fromZone, inZone } from '../time.js';

// drawInput returns null for an element that is not an input.
export function drawInput(element, block, surface, labelling) {
  switch (element.type) {
    case 'plain_text_input': return drawText(element, block, surface, labelling, { multiline: element.multiline });
    case 'rich_text_input': return drawText(element, block, surface, labelling, { multiline: true });
    case 'email_text_input': return drawText(element, block, surface, labelling, { type: 'email', inputmode: 'email' });
    case 'url_text_input': return drawText(element, block, surface, labelling, { type: 'url', inputmode: 'url' });
    case 'number_input': return drawText(element, block, surface, labelling, { type: 'text', inputmode: element.is_decimal_allowed ? 'decimal' : 'numeric' });
    case 'datepicker': return drawPicker(element, block, surface, labelling, 'date');
    case 'timepicker': return drawPicker(element, block, surface, labelling, 'time');
    case 'datetimepicker': return drawMoment(element, block, surface, labelling);
    case 'checkboxes': return drawChoices(element, block, surface, labelling, 'checkbox');
    case 'radio_buttons': return drawChoices(element, block, surface, labelling, 'radio');
    case 'file_input': return h('p', { class: 'fallback', ...markers(block, element) }, 'Files can’t be attached in the local workspace. Leave this field empty.');
    default: return null;
  }
}

function current(element, block, surface) {
  return surface.form ? surface.form.value(block, element) : initialValue(element);
}

function common(element, block, labelling) {
  return {
    id: labelling.id, 'aria-label': labelling.id ? null : labelling.label ?? (plainOf(element.placeholder) || element.type.replaceAll('_', ' ')),
    'aria-describedby': labelling.describedBy, 'aria-invalid': labelling.invalid || null, 'aria-required': labelling.required || null,
    ...markers(block, element),
  };
}

function drawText(element, block, surface, labelling, { multiline = false, ...props }) {
  const triggers = element.dispatch_action_config?.trigger_actions_on ?? ['on_enter_pressed'];
  const tell = () => changed(surface, block, element, field.value, field);
  const left = h('span', { class: 'field-count', 'aria-live': 'polite' });
  // Slack shows the remaining characters near the limit.
  const showLeft = () => {
    const rest = (element.max_length ?? Infinity) - [...field.value].length;
    left.textContent = rest <= 50 ? String(rest) : '';
    left.classList.toggle('over', rest < 0);
  };
  const field = h(multiline ? 'textarea' : 'input', {
    class: multiline ? 'field field-multiline' : 'field', placeholder: plainOf(element.placeholder) || null, autocomplete: 'off',
    rows: multiline ? '4' : null, ...props, ...common(element, block, labelling),
    value: current(element, block, surface) ?? '',
    oninput: () => {
      surface.form?.set(block, element, field.value);
      if (triggers.includes('on_character_entered') && (block.type !== 'input' || block.dispatch_action)) tell();
      showLeft();
    },
    onkeydown: (event) => {
      if (event.key !== 'Enter' || multiline || event.isComposing) return;
      if ((block.type !== 'input' || block.dispatch_action) && triggers.includes('on_enter_pressed')) {
        event.preventDefault();
        tell();
      }
    },
  });
  if (!element.max_length) return field;
  showLeft();
  return h('span', { class: 'field-holder' }, field, left);
}

function drawPicker(element, block, surface, labelling, type) {
  const field = h('input', {
    class: 'field field-short', type, ...common(element, block, labelling),
    value: current(element, block, surface) ?? '',
    onchange: () => changed(surface, block, element, field.value || null, field),
  });
  return field;
}

// drawMoment shows a date and time in the person's time zone and sends seconds since 1970.
function drawMoment(element, block, surface, labelling) {
  const { tz } = surface.people;
  const seconds = Number(current(element, block, surface));
  const field = h('input', {
    class: 'field field-short', type: 'datetime-local', title: `In ${tz}`, ...common(element, block, labelling),
    value: seconds ? localValue(seconds, tz) : '',
    onchange: () => {
      const match = /^(\d+)-(\d+)-(\d+)T(\d+):(\d+)/.exec(field.value);
      const [, year, month, day, hour, minute] = (match ?? []).map(Number);
      changed(surface, block, element, match ? String(fromZone({ year, month, day, hour, minute }, tz)) : null, field);
    },
  });
  return field;
}

function localValue(seconds, tz) {
  const two = (n) => String(n).padStart(2, '0');
  const z = inZone(seconds, tz);
  return `${z.year}-${two(z.month)}-${two(z.day)}T${two(z.hour)}:${two(z.minute)}`;
}

function drawChoices(element, block, surface, labelling, type) {
  const name = uid('choice');
  const chosen = new Set([current(element, block, surface) ?? []].flat());
  const group = h('div', {
    class: 'choices', role: type === 'radio' ? 'radiogroup' : 'group', 'aria-labelledby': labelling.labelId,
    'aria-label': labelling.labelId ? null : 'Choices', 'aria-describedby': labelling.describedBy, ...markers(block, element),
  });
  for (const option of element.options ?? []) {
    const box = h('input', {
      type, name, value: option.value, checked: chosen.has(option.value), 'data-testid': 'choice', 'data-value': option.value,
      'data-key': `${block.block_id}/${element.action_id}/${option.value}`,
      onchange: () => {
        const values = [...group.querySelectorAll('input')].filter((other) => other.checked).map((other) => other.value);
        changed(surface, block, element, type === 'radio' ? values[0] ?? null : values, group);
      },
    });
    group.append(h('label', { class: 'choice' }, box, h('span', { class: 'choice-text' }, renderText(option.text, surface.people),
      option.description ? h('span', { class: 'option-description' }, renderText(option.description, surface.people)) : null)));
  }
  return group;
}
