// Draws plan and task_card blocks, which show the steps of an agent's work.

import { h } from '../widgets/dom.js';
import { icon } from '../widgets/icons.js';
import { link } from './inline.js';
import { renderRichText, renderText } from './richtext.js';

const states = {
  pending: 'Waiting', in_progress: 'Under way', complete: 'Done', error: 'Failed',
};

const titleOf = (title, people) => (typeof title === 'string' ? title : renderText(title, people));

export function drawPlan(block, surface) {
  const tasks = block.tasks ?? [];
  const done = tasks.filter((task) => task.status === 'complete').length;
  return h('div', { class: 'plan' },
    h('div', { class: 'plan-title' }, h('strong', null, titleOf(block.title, surface.people)), h('span', { class: 'muted' }, `${done} of ${tasks.length} done`)),
    h('div', { class: 'plan-tasks' }, tasks.map((task) => drawTask(task, surface))));
}

export function drawTask(task, surface) {
  const status = task.status in states ? task.status : 'pending';
  const inside = [
    task.details ? h('div', { class: 'rich' }, renderRichText(task.details, surface.people)) : null,
    task.output ? h('div', { class: 'rich task-output' }, renderRichText(task.output, surface.people)) : null,
    task.sources?.length ? h('div', { class: 'task-sources' }, task.sources.map((source) => link(source.url, [source.text ?? source.url]))) : null,
  ].filter(Boolean);
  const head = [
    h('span', { class: `task-state task-${status}`, role: 'img', 'aria-label': states[status] }, status === 'complete' ? icon('check', 12) : status === 'error' ? icon('close', 12) : null),
    h('span', { class: 'task-title' }, titleOf(task.title, surface.people)),
  ];
  const props = { class: 'task', 'data-testid': 'task', 'data-status': status, 'data-task-id': task.task_id };
  if (!inside.length) return h('div', props, h('div', { class: 'task-head' }, head));
  return h('details', { ...props, open: status === 'error' }, h('summary', { class: 'task-head' }, head, icon('down', 14)), inside);
}
