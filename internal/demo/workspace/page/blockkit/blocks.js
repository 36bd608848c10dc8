// Block Kit's layout blocks.

import { plainOf } from './action.js';
import { clamp, longText } from './clamp.js';
import { h, uid } from '../widgets/dom.js';
import { drawElement } from './elements.js';
import { drawPlan, drawTask } from './tasks.js';
import { icon } from '../widgets/icons.js';
import { safeUrl } from './inline.js';
import { renderMarkdown, renderRichText, renderText } from './richtext.js';
import { drawTableBlock } from './tables.js';

// drawBlocks draws a list of blocks on a surface (see action.js).
export function drawBlocks(blocks, surface) {
  return (blocks ?? []).filter(Boolean).map((block, index) => {
    const draw = drawers[block.type] ?? drawUnknown;
    const inside = [draw(block, surface, index)].flat();
    return h('div', { class: `block block-${block.type}`, 'data-testid': 'block', 'data-block-type': block.type, 'data-block-id': block.block_id }, inside, errorPlace(block, surface));
  });
}

// errorPlace returns the place for an action's error, beside its control.
function errorPlace(block, surface) {
  if (block.type === 'input') return null;
  const problem = surface.problem?.(block);
  return h('p', { class: 'action-error', role: 'alert', 'data-testid': 'action-error', 'data-for-block': block.block_id, hidden: !problem }, problem);
}

const drawers = {
  section: drawSection,
  header: (block, surface) => h(surface.heading ?? 'h3', { class: 'header' }, renderText(block.text, surface.people)),
  divider: () => h('hr', { class: 'divider' }),
  context: drawContext,
  actions: (block, surface) => h('div', { class: 'actions' }, (block.elements ?? []).map((element) => drawElement(element, block, surface))),
  context_actions: (block, surface) => h('div', { class: 'actions actions-small' }, (block.elements ?? []).map((element) => drawElement(element, block, surface))),
  image: drawImage,
  input: drawInputBlock,
  rich_text: (block, surface, index) => clamp(`${surface.key}/${block.block_id ?? index}`, h('div', { class: 'rich' }, renderRichText(block, surface.people)), longText(richLength(block))),
  markdown: (block, surface, index) => clamp(`${surface.key}/${block.block_id ?? index}`, h('div', { class: 'rich' }, renderMarkdown(block.text, surface.people)), longText(block.text)),
  table: drawTableBlock,
  plan: drawPlan,
  task_card: drawTask,
};

function drawSection(block, surface, index) {
  const text = block.text ? h('div', { class: 'rich' }, renderText(block.text, surface.people)) : null;
  const body = h('div', { class: 'section-body' },
    text && (block.expand ? text : clamp(`${surface.key}/${block.block_id ?? index}`, text, longText(block.text.text))),
    block.fields?.length ? h('div', { class: 'fields' }, block.fields.map((field) => h('div', { class: 'section-field' }, renderText(field, surface.people)))) : null);
  const { accessory } = block;
  if (!accessory) return body;
  const side = accessory.type === 'image' ? picture(accessory, 'section-image')
    : drawElement(accessory, block, surface, { label: firstWords(block.text) });
  return h('div', { class: 'section-row' }, body, h('div', { class: 'accessory' }, side));
}

function firstWords(object) {
  return object ? plainOf(object).replace(/[*_~`]/g, '').slice(0, 80) : undefined;
}

function drawContext(block, surface) {
  return h('div', { class: 'context' }, (block.elements ?? []).map((element) => (element.type === 'image'
    ? picture(element, 'context-image') : h('span', { class: 'context-text' }, renderText(element, surface.people)))));
}

function drawImage(block, surface) {
  return h('figure', { class: 'figure' }, block.title ? h('figcaption', null, renderText(block.title, surface.people)) : null, picture(block, 'picture'));
}

// picture shows the alternative text if the image can't be loaded.
function picture(element, className) {
  const src = safeUrl(element.image_url ?? element.slack_file?.url ?? '') ?? localUrl(element.image_url ?? element.slack_file?.url);
  const alt = element.alt_text ?? '';
  const instead = () => h('span', { class: `${className} picture-missing`, role: 'img', 'aria-label': alt }, icon('file', 16), className === 'context-image' ? null : h('span', null, alt || 'Image'));
  if (!src) return instead();
  const image = h('img', { class: className, src, alt, loading: 'lazy', referrerpolicy: 'no-referrer' });
  image.addEventListener('error', () => image.replaceWith(instead()), { once: true });
  return image;
}

function localUrl(url) {
  return /^\/(?!\/)/.test(String(url ?? '')) ? url : null;
}

function drawInputBlock(block, surface) {
  const id = uid('field');
  const [labelId, hintId, errorId] = [`${id}-label`, `${id}-hint`, `${id}-error`];
  const error = surface.form?.errors.get(block.block_id);
  const group = ['checkboxes', 'radio_buttons'].includes(block.element?.type);
  const labelText = [renderText(block.label, surface.people), block.optional ? h('span', { class: 'optional' }, ' (optional)') : null];
  const labelling = {
    id: group ? null : id, labelId, label: plainOf(block.label), invalid: Boolean(error), required: !block.optional,
    describedBy: [error && errorId, block.hint && hintId].filter(Boolean).join(' ') || null,
  };
  return h('div', { class: error ? 'input input-invalid' : 'input', 'data-testid': 'input', 'data-block-id': block.block_id },
    group ? h('div', { class: 'label', id: labelId }, labelText) : h('label', { class: 'label', id: labelId, for: id }, labelText),
    drawElement(block.element, block, surface, labelling),
    h('p', { id: errorId, class: 'field-error', role: 'alert', 'data-testid': 'field-error', hidden: !error }, error),
    block.hint ? h('p', { id: hintId, class: 'hint' }, renderText(block.hint, surface.people)) : null);
}

// drawUnknown shows the words of a kind of block that this page does not draw.
function drawUnknown(block) {
  const words = textsOf(block);
  return h('div', { class: 'fallback' }, h('span', { class: 'fallback-kind' }, `A block of the kind “${block.type ?? 'unknown'}”`), words.length ? h('div', null, words.join('\n')) : null);
}

function textsOf(node) {
  if (Array.isArray(node)) return node.flatMap(textsOf);
  if (!node || typeof node !== 'object') return [];
  return Object.entries(node).flatMap(([key, value]) => (typeof value === 'string' && ['text', 'title', 'caption', 'alt_text', 'label', 'description'].includes(key) ? [value] : textsOf(value)));
}

function richLength(block) {
  return textsOf(block.elements).join('\n');
}
