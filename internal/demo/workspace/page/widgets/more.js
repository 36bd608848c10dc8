// A strip that continues below its edge is marked (data-more), because its scroll bar is thin or hidden.

// watchMore keeps the mark of a strip whose size changes or that is scrolled.
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
