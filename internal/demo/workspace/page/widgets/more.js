// Marks a strip that continues below its edge with data-more, because its scroll bar is thin or hidden.

// watchMore updates the mark when the strip is scrolled or its size changes.
export function watchMore(container) {
  if (!container.onscroll) {
    container.onscroll = () => markMore(container);
    new ResizeObserver(() => markMore(container)).observe(container);
  }
  markMore(container);
}

function markMore(container) {
  container.toggleAttribute('data-more', container.scrollHeight - container.scrollTop - container.clientHeight > 12);
}
