// data_visualization: a drawing for the eye, and the same numbers as a table for everybody.

import { h } from './dom.js';
import { drawTable } from './richtext.js';

const svgNamespace = 'http://www.w3.org/2000/svg';
const [width, height] = [520, 190];

export function drawChart(block) {
  const chart = block.chart ?? {};
  const pie = chart.type === 'pie';
  const names = pie ? (chart.segments ?? []).map((segment) => segment.label) : (chart.series ?? []).map((series) => series.name);
  const picture = svg('svg', { viewBox: `0 0 ${width} ${height}`, class: 'chart-picture', 'aria-hidden': 'true' }, pie ? slices(chart.segments ?? []) : drawSeries(chart));
  return h('figure', { class: 'chart' }, h('figcaption', { class: 'chart-title' }, block.title), picture,
    h('ul', { class: 'chart-legend', 'aria-hidden': 'true' }, names.map((name, i) => h('li', null, h('span', { class: `chart-key chart-${i % 6}` }), name))),
    axes(chart.axis_config),
    h('details', { class: 'chart-numbers' }, h('summary', null, 'The numbers'), pie ? pieTable(chart) : seriesTable(chart)));
}

function svg(tag, props, ...children) {
  const el = document.createElementNS(svgNamespace, tag);
  for (const [name, value] of Object.entries(props)) el.setAttribute(name, value);
  el.append(...children.flat(Infinity));
  return el;
}

function axes(config) {
  const labels = [config?.y_label && `Vertical: ${config.y_label}`, config?.x_label && `Horizontal: ${config.x_label}`].filter(Boolean);
  return labels.length ? h('div', { class: 'muted chart-axes' }, labels.join(' · ')) : null;
}

function slices(segments) {
  const total = segments.reduce((sum, segment) => sum + segment.value, 0) || 1;
  const [x, y, r] = [width / 2, height / 2, height / 2 - 8];
  const at = (share) => [x + r * Math.sin(2 * Math.PI * share), y - r * Math.cos(2 * Math.PI * share)];
  let from = 0;
  return segments.map((segment, i) => {
    const share = segment.value / total;
    const to = from + Math.min(share, 0.9999); // a full circle is no arc
    const path = `M${x} ${y}L${at(from)}A${r} ${r} 0 ${share > 0.5 ? 1 : 0} 1 ${at(to)}Z`;
    from += share;
    return svg('path', { d: path, class: `chart-slice chart-${i % 6}` });
  });
}

function drawSeries(chart) {
  const categories = chart.axis_config?.categories ?? [];
  const series = (chart.series ?? []).map((one) => categories.map((name) => one.data?.find((point) => point.label === name)?.value ?? 0));
  const values = series.flat();
  const [low, high] = [Math.min(0, ...values), Math.max(0, ...values, 1e-9)];
  const step = (width - 20) / Math.max(categories.length, 1);
  const y = (value) => 8 + (height - 34) * (1 - (value - low) / (high - low));
  const middle = (i) => 10 + step * (i + 0.5);
  const labels = categories.map((name, i) => svg('text', { x: middle(i), y: height - 6, class: 'chart-label' }, document.createTextNode(name)));
  const ground = svg('line', { x1: 10, x2: width - 10, y1: y(0), y2: y(0), class: 'chart-ground' });
  const drawn = series.map((line, s) => {
    if (chart.type === 'bar') {
      const bar = step * 0.7 / series.length;
      return line.map((value, i) => svg('rect', { x: middle(i) - step * 0.35 + bar * s, y: Math.min(y(value), y(0)), width: Math.max(bar - 2, 1), height: Math.max(Math.abs(y(value) - y(0)), 1), class: `chart-bar chart-${s % 6}` }));
    }
    const points = line.map((value, i) => `${middle(i)} ${y(value)}`).join('L');
    const area = chart.type === 'area' ? [svg('path', { d: `M${middle(0)} ${y(0)}L${points}L${middle(line.length - 1)} ${y(0)}Z`, class: `chart-area chart-${s % 6}` })] : [];
    return [area, svg('path', { d: `M${points}`, class: `chart-line chart-${s % 6}` }), line.map((value, i) => svg('circle', { cx: middle(i), cy: y(value), r: 3, class: `chart-dot chart-${s % 6}` }))];
  });
  return [ground, drawn, labels];
}

function pieTable(chart) {
  return drawTable([['', 'Value'], ...(chart.segments ?? []).map((segment) => [segment.label, String(segment.value)])], ['left', 'right']);
}

function seriesTable(chart) {
  const categories = chart.axis_config?.categories ?? [];
  const rows = (chart.series ?? []).map((series) => [series.name, ...categories.map((name) => String(series.data?.find((point) => point.label === name)?.value ?? ''))]);
  return drawTable([['', ...categories], ...rows], ['left', ...categories.map(() => 'right')]);
}
