// Blocks of type table and data_table.

import { h } from './dom.js';
import { drawElement } from './elements.js';
import { drawTable, renderRichText } from './richtext.js';

export function drawTableBlock(block, surface) {
  const align = (block.column_settings ?? []).map((column) => column?.align);
  return drawTable((block.rows ?? []).map((row) => row.map((cell) => drawCell(cell, block, surface))), align);
}

// drawDataTable shows a page of rows; the others are there on request.
export function drawDataTable(block, surface) {
  const rows = block.rows ?? [];
  const size = block.page_size || 5;
  const numbers = (rows[1] ?? []).map((cell) => (cell?.type === 'raw_number' ? 'right' : 'left'));
  const draw = (row) => row.map((cell) => drawCell(cell, block, surface));
  const table = drawTable([rows[0] ?? [], ...rows.slice(1, size + 1)].map(draw), numbers, { caption: block.caption, header: block.row_header_column_index ?? 0 });
  const rest = rows.length - 1 - size;
  if (rest <= 0) return table;
  const more = h('button', { type: 'button', class: 'link-button', onclick: () => more.replaceWith(drawTable(rows.slice(size + 1).map(draw), numbers, { headless: true, label: `${block.caption}, the other rows`, header: block.row_header_column_index ?? 0 })) }, `Show ${rest} more`);
  return [table, more];
}

function drawCell(cell, block, surface) {
  switch (cell?.type) {
    case 'rich_text': return renderRichText(cell, surface.people);
    case 'raw_number': return String(cell.text || cell.value);
    case 'action_cell': return drawElement(cell.element, block, surface);
    default: return String(cell?.text ?? '');
  }
}
