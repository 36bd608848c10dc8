// The page's own icons: strokes on a 20 × 20 grid, in the colour of the surrounding text.

const svgNamespace = 'http://www.w3.org/2000/svg';

const strokes = {
  hash: 'M8 3 6.5 17M13.5 3 12 17M3.5 7.5h13M3.5 12.5h13',
  lock: 'M5.5 9h9v7.5h-9zM7.5 9V6.5a2.5 2.5 0 0 1 5 0V9',
  close: 'M5 5l10 10M15 5 5 15',
  down: 'M5 8l5 5 5-5',
  back: 'M12.5 4.5 7 10l5.5 5.5',
  send: 'M3.5 4 17 10 3.5 16l2-6zM5.5 10H11',
  thread: 'M4 4.5h12v8.5H9.5L6 16v-3H4z',
  eye: 'M2.5 10S5.5 5 10 5s7.5 5 7.5 5-3 5-7.5 5-7.5-5-7.5-5zM10 12.2a2.2 2.2 0 1 0 0-4.4 2.2 2.2 0 0 0 0 4.4',
  warning: 'M10 3.5 17.5 16.5h-15zM10 8.5v3.5M10 14.3v.2',
  more: 'M4.5 10h.01M10 10h.01M15.5 10h.01',
  smile: 'M10 17.5a7.5 7.5 0 1 0 0-15 7.5 7.5 0 0 0 0 15M7 11.8c.7 1.1 1.7 1.7 3 1.7s2.3-.6 3-1.7M7.5 7.8v.2M12.5 7.8v.2',
  plus: 'M10 4v12M4 10h12',
  find: 'M9 14.5a5.5 5.5 0 1 0 0-11 5.5 5.5 0 0 0 0 11M13 13l4 4',
  sun: 'M10 13.2a3.2 3.2 0 1 0 0-6.4 3.2 3.2 0 0 0 0 6.4M10 2v2M10 16v2M2 10h2M16 10h2M4.4 4.4l1.4 1.4M14.2 14.2l1.4 1.4M4.4 15.6l1.4-1.4M14.2 5.8l1.4-1.4',
  moon: 'M16 12.2A6.6 6.6 0 0 1 7.8 4a6.5 6.5 0 1 0 8.2 8.2z',
  help: 'M10 17.5a7.5 7.5 0 1 0 0-15 7.5 7.5 0 0 0 0 15M7.8 7.8a2.2 2.2 0 1 1 3.2 2c-.7.4-1 .8-1 1.6M10 14.2v.1',
  check: 'M4.5 10.5l3.5 3.5 7.5-8',
  clip: 'M14.5 8.5 9 14a3 3 0 0 1-4.2-4.2l6.3-6.3a2 2 0 0 1 2.9 2.8l-6 6a.9.9 0 0 1-1.3-1.3l5-5',
  file: 'M5.5 2.5h6l3.5 3.5v11.5H5.5zM11.5 2.5V6H15',
  at: 'M10 12.8a2.8 2.8 0 1 0 0-5.6 2.8 2.8 0 0 0 0 5.6M12.8 7.2v3.9a1.9 1.9 0 0 0 3.8 0V10a6.6 6.6 0 1 0-2.6 5.2',
  people: 'M7.5 9.5a2.7 2.7 0 1 0 0-5.4 2.7 2.7 0 0 0 0 5.4M2.5 16c.3-3 2.3-4.5 5-4.5s4.7 1.5 5 4.5M13 4.5a2.5 2.5 0 0 1 0 4.8M14.5 11.8c1.8.5 2.8 1.9 3 4.2',
  bell: 'M10 3a4.6 4.6 0 0 0-4.6 4.6c0 4-1.9 5.4-1.9 6.4h13c0-1-1.9-2.4-1.9-6.4A4.6 4.6 0 0 0 10 3zM8.4 16.5a1.7 1.7 0 0 0 3.2 0',
  quiet: 'M3.5 8.5h6l-6 7.5h6M12 3.5h4.5L12 9h4.5',
  home: 'M3.5 9.5 10 4l6.5 5.5V16.5h-4.5v-4h-4v4H3.5z',
};

export function icon(name, size = 18) {
  const svg = document.createElementNS(svgNamespace, 'svg');
  svg.setAttribute('viewBox', '0 0 20 20');
  svg.setAttribute('width', size);
  svg.setAttribute('height', size);
  svg.setAttribute('class', `icon icon-${name}`);
  svg.setAttribute('aria-hidden', 'true');
  const path = document.createElementNS(svgNamespace, 'path');
  path.setAttribute('d', strokes[name] ?? '');
  svg.append(path);
  return svg;
}
