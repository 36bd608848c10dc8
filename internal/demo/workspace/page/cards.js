// Card, carousel, alert, container, layout and auth_provider: blocks that frame a thing, or other blocks.

import { drawBlocks, picture } from './blocks.js';
import { h } from './dom.js';
import { drawElement } from './elements.js';
import { icon } from './icons.js';
import { link } from './inline.js';
import { renderRichText, renderText } from './richtext.js';

export function drawCard(block, surface) {
  const { people } = surface;
  const sign = block.icon ? picture(block.icon, 'card-icon') : block.slack_icon ? h('span', { class: 'card-icon', title: block.slack_icon.name }, icon('file', 18)) : null;
  const line = (name) => (block[name] ? h('div', { class: `card-${name}` }, renderText(block[name], people)) : null);
  return h('article', { class: 'card' },
    block.hero_image ? picture(block.hero_image, 'card-hero') : null,
    h('div', { class: 'card-head' }, sign, h('div', null, line('title'), line('subtitle'))),
    line('body'),
    block.actions?.length ? h('div', { class: 'actions' }, block.actions.map((element) => drawElement(element, block, surface))) : null,
    line('subtext'));
}

export function drawCarousel(block, surface) {
  return h('div', { class: 'carousel', role: 'group', 'aria-label': 'Cards, one beside the other', tabindex: '0' }, drawBlocks(block.elements, surface));
}

const alertSigns = { info: 'help', warning: 'warning', error: 'warning', success: 'check' };

export function drawAlert(block, surface) {
  const level = block.level in alertSigns ? block.level : 'default';
  return h('div', { class: `alert alert-${level}`, role: 'note', 'aria-label': level === 'default' ? 'Note' : level }, icon(alertSigns[level] ?? 'bell', 18), h('div', { class: 'rich' }, renderText(block.text, surface.people)));
}

export function drawContainer(block, surface) {
  const title = block.rich_text_title ? renderRichText(block.rich_text_title, surface.people) : renderText(block.title, surface.people);
  const head = [
    block.icon ? picture(block.icon, 'card-icon') : null,
    h('div', { class: 'container-title' }, h('strong', null, title), block.subtitle ? h('div', { class: 'muted' }, renderText(block.subtitle, surface.people)) : null),
  ];
  const inside = h('div', { class: 'container-inside' }, drawBlocks(block.child_blocks, surface));
  const props = { class: `container container-${block.width ?? 'standard'}${block.has_header_divider ? ' container-divided' : ''}` };
  if (!block.is_collapsible) return h('section', props, h('div', { class: 'container-head' }, head), inside);
  return h('details', { ...props, open: !block.default_collapsed }, h('summary', { class: 'container-head' }, head, icon('down', 14)), inside);
}

export function drawLayout(block, surface) {
  const item = (one) => h('div', { class: `layout-item layout-${one.width ?? 'auto'} layout-${one.horizontal_alignment ?? 'start'}` }, drawBlocks([one.block], surface));
  return h('div', { class: `layout layout-lines-${block.grid_lines ?? 'none'}`, role: 'group', 'aria-label': block.label },
    block.is_label_visible ? h('div', { class: 'layout-label' }, block.label) : null,
    (block.rows ?? []).map((row) => h('div', { class: 'layout-row' }, (row.items ?? []).map(item))));
}

export function drawAuthProvider(block, surface) {
  const { people } = surface;
  const door = block.is_connected ? [block.disconnect_url, 'Disconnect'] : [block.auth_url, 'Connect'];
  return h('div', { class: 'card auth' },
    h('div', { class: 'card-head' }, block.icon_url ? picture({ image_url: block.icon_url, alt_text: '' }, 'card-icon') : null,
      h('div', { class: 'auth-text' }, h('strong', null, renderText(block.name, people)), block.description ? h('div', { class: 'muted' }, renderText(block.description, people)) : null),
      door[0] ? link(door[0], [door[1]], { class: 'button' }) : null,
      block.accessory ? drawElement(block.accessory, block, surface) : null),
    h('div', { class: 'muted' }, block.is_connected ? ['Connected ', block.connected_identity ? renderText(block.connected_identity, people) : null, ' ', block.connected_context ? renderText(block.connected_context, people) : null] : 'Not connected'));
}
