// The only module that makes elements. Text always becomes a text node. So the browser never parses a text of a person,
// a model or an app as HTML.

const properties = new Set(['value', 'checked', 'disabled', 'indeterminate', 'open', 'selected', 'readOnly']);

// h makes an element: h('a', {class: 'x', onclick: f}, 'text', child).
// A prop that is null, undefined or false is left out. children may be nested lists.
export function h(tag, props, ...children) {
  const el = document.createElement(tag);
  for (const [name, value] of Object.entries(props ?? {})) {
    if (value === null || value === undefined || value === false) continue;
    if (name.startsWith('on')) el.addEventListener(name.slice(2), value);
    else if (properties.has(name)) el[name] = value;
    else if (name === 'class') el.className = value;
    else el.setAttribute(name, value === true && !name.startsWith('aria-') ? '' : String(value));
  }
  append(el, children);
  return el;
}

export function append(el, ...children) {
  for (const child of children.flat(Infinity)) {
    if (child === null || child === undefined || child === false) continue;
    el.append(child);
  }
  return el;
}

// replace replaces an element's children, and keeps the focus on the same control. A control is identified by its
// data-key, data-action-id or data-testid.
export function replace(container, ...children) {
  const restore = rememberFocus(container);
  container.replaceChildren();
  append(container, children);
  restore();
}

// rememberFocus returns a function that restores the focus after container or its content was replaced.
// replaced.
export function rememberFocus(container) {
  const active = document.activeElement;
  if (!active || active === container || !container.contains(active)) return () => {};
  const selector = focusSelector(active);
  return (successor = container) => {
    const again = selector && successor.querySelector(selector);
    if (again && !again.disabled) again.focus({ preventScroll: true });
  };
}

function focusSelector(el) {
  for (const name of ['data-key', 'data-action-id', 'data-testid']) {
    const value = el.getAttribute(name);
    if (value) return `[${name}="${CSS.escape(value)}"]`;
  }
  return '';
}

let counter = 0;

// uid returns an id for aria-labelledby, aria-controls and the like.
export function uid(prefix) {
  counter += 1;
  return `${prefix}-${counter}`;
}

// say announces a sentence to screen readers.
export function say(text) {
  const live = document.getElementById('live');
  if (live) live.textContent = text;
}
