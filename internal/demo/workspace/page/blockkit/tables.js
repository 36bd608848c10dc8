// Draws table blocks.

import { drawTable, renderRichText } from './richtext.js';

export function drawTableBlock(block, surface) {
  const align = (block.column_settings ?? []).map((column) => column?.align);
  return drawTable((block.rows ?? []).map((row) => row.map((cell) => drawCell(cell, surface))), align);
}

function drawCell(cell, surface) {
  switch (cell?.type) {
    case 'rich_text': return renderRichText(cell, surface.people);
    case 'raw_number': return String(cell.text || cell.value);
    default: return String(cell?.text ?? '');
  }
}
