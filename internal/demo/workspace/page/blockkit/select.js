// The combobox for all select menus of Block Kit. A person can choose one or several options, and can type a filter.
// The options may come from the app.

import { h, uid } from '../widgets/dom.js';
import { follow, place } from '../widgets/floating.js';
import { icon } from '../widgets/icons.js';

// createSelect draws a select. find(text) returns options {value, text, description, group, face}, or a promise of
// them. textOf returns the text of an earlier choice. onchange gets the list of chosen values.
export function createSelect({ label, placeholder, multiple = false, max = 0, chosen, find, minQuery = 0, textOf, onchange, attributes = {}, clearable = false, describedBy }) {
  let values = [...chosen];
  let options = [];
  let active = -1;
  let open = false;
  let stopWatching = () => {};
  let question = 0;

  const listId = uid('list');
  const list = h('div', { id: listId, class: 'listbox', role: 'listbox', popover: 'manual', 'aria-label': label, 'aria-multiselectable': multiple || null });
  const input = h('input', {
    class: 'select-input', type: 'text', role: 'combobox', autocomplete: 'off', spellcheck: 'false',
    'aria-autocomplete': 'list', 'aria-expanded': 'false', 'aria-controls': listId, 'aria-label': label, 'aria-describedby': describedBy,
    'data-testid': 'select', ...attributes,
    oninput: () => show(input.value),
    onclick: () => (open ? null : show('')),
    onkeydown: onKey,
    onblur: hide,
  });
  const chips = h('span', { class: 'chips' });
  const clear = h('button', { type: 'button', class: 'select-clear', 'aria-label': `Clear ${label}`, onclick: () => choose([]) }, icon('close', 14));
  const box = h('div', { class: multiple ? 'select select-multiple' : 'select', onclick: (event) => (event.target === box ? input.focus() : null) },
    chips, input, clear, icon('down', 16), list);

  // Without this handler, a click in the list would take the focus from the input, and the list would close.
  list.addEventListener('mousedown', (event) => event.preventDefault());

  function drawChosen() {
    clear.hidden = !(clearable && !multiple && values.length);
    input.placeholder = multiple && values.length ? '' : placeholder;
    if (!multiple) {
      input.value = values.length ? textOf(values[0]) : '';
      return;
    }
    input.value = '';
    chips.replaceChildren(...values.map((value) => h('span', { class: 'chip', 'data-value': value }, textOf(value),
      h('button', { type: 'button', 'aria-label': `Remove ${textOf(value)}`, onclick: () => choose(values.filter((other) => other !== value)) }, icon('close', 12)))));
  }

  function choose(next) {
    values = next;
    drawChosen();
    onchange(values);
    input.focus();
  }

  async function show(text) {
    question += 1;
    const mine = question;
    if (!open) {
      open = true;
      list.showPopover();
      input.setAttribute('aria-expanded', 'true');
      stopWatching = follow(list, box, { matchWidth: true });
    }
    if (text.length < minQuery) {
      note(minQuery === 1 ? 'Type to search.' : `Type ${minQuery} letters or more to search.`);
      return;
    }
    const answer = find(text);
    if (answer instanceof Promise) note('Searching…');
    try {
      const found = await answer;
      if (mine !== question || !open) return;
      options = found;
    } catch (error) {
      if (mine === question && open) note(error.sentence ?? 'The options couldn’t be fetched. Try again.');
      return;
    }
    active = options.findIndex((option) => values.includes(option.value));
    if (active < 0 && options.length) active = 0;
    drawOptions();
  }

  function note(text) {
    options = [];
    active = -1;
    list.replaceChildren(h('div', { class: 'listbox-note' }, text));
    place(list, box, { matchWidth: true });
  }

  function drawOptions() {
    if (!options.length) {
      note('Nothing found.');
      return;
    }
    let group;
    const rows = [];
    options.forEach((option, index) => {
      if (option.group && option.group !== group) rows.push(h('div', { class: 'listbox-group' }, option.group));
      group = option.group;
      rows.push(h('div', {
        class: 'option', role: 'option', id: `${listId}-${index}`, 'aria-selected': String(values.includes(option.value)),
        'data-testid': 'option', 'data-value': option.value, onclick: () => pick(index), onmousemove: () => setActive(index),
      }, option.face?.(), h('span', { class: 'option-text' }, option.text, option.description ? h('span', { class: 'option-description' }, option.description) : null),
      values.includes(option.value) ? icon('check', 16) : null));
    });
    list.replaceChildren(...rows);
    place(list, box, { matchWidth: true });
    setActive(active);
  }

  function setActive(index) {
    active = index;
    list.querySelectorAll('.option').forEach((row, i) => row.classList.toggle('option-active', i === index));
    const row = list.querySelectorAll('.option')[index];
    row?.scrollIntoView({ block: 'nearest' });
    if (row) input.setAttribute('aria-activedescendant', row.id);
    else input.removeAttribute('aria-activedescendant');
  }

  function pick(index) {
    const option = options[index];
    if (!option) return;
    if (!multiple) {
      hide();
      choose([option.value]);
    } else if (values.includes(option.value)) {
      choose(values.filter((value) => value !== option.value));
      drawOptions();
    } else if (!max || values.length < max) {
      choose([...values, option.value]);
      drawOptions();
    } else {
      note(`You can choose ${max} here.`);
    }
  }

  function hide() {
    if (!open) return;
    open = false;
    question += 1;
    stopWatching();
    if (list.matches(':popover-open')) list.hidePopover();
    input.setAttribute('aria-expanded', 'false');
    input.removeAttribute('aria-activedescendant');
    drawChosen();
  }

  function onKey(event) {
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (step && !open) show('');
    else if (step) setActive(Math.max(0, Math.min(options.length - 1, active + step)));
    else if (event.key === 'Enter' && open) pick(active);
    else if (event.key === 'Escape' && open) hide();
    else if (event.key === 'Backspace' && multiple && !input.value && values.length) choose(values.slice(0, -1));
    else return;
    event.preventDefault();
    event.stopPropagation();
  }

  drawChosen();
  return box;
}
