// Lists and menus above everything else, including modals. They use the browser's popover layer.

// place puts a popover below its anchor, or above it if there is more room.
export function place(popover, anchor, { matchWidth = false, alignEnd = false } = {}) {
  const box = anchor.getBoundingClientRect();
  const gap = 4;
  const below = innerHeight - box.bottom - gap;
  const above = box.top - gap;
  const flip = below < 200 && above > below;
  if (matchWidth) popover.style.width = `${box.width}px`;
  popover.style.maxHeight = `${Math.max(120, Math.min(320, (flip ? above : below) - 8))}px`;
  const width = popover.offsetWidth;
  const left = alignEnd ? box.right - width : box.left;
  popover.style.left = `${Math.max(8, Math.min(left, innerWidth - width - 8))}px`;
  if (flip) {
    popover.style.top = 'auto';
    popover.style.bottom = `${innerHeight - box.top + gap}px`;
  } else {
    popover.style.bottom = 'auto';
    popover.style.top = `${box.bottom + gap}px`;
  }
}

// follow keeps a popover at its anchor while the page scrolls. follow returns a function that ends this.
export function follow(popover, anchor, options) {
  place(popover, anchor, options);
  const moved = (event) => {
    if (event.target instanceof Node && popover.contains(event.target)) return;
    place(popover, anchor, options);
  };
  addEventListener('scroll', moved, true);
  addEventListener('resize', moved);
  return () => {
    removeEventListener('scroll', moved, true);
    removeEventListener('resize', moved);
  };
}
