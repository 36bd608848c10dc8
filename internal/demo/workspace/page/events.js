// The live feed. An event only says what to read again; the page never takes state from it.

// A browser opens at most six connections to one address. Hidden tabs therefore close theirs after a while, so that one
// tab for each of seven people works.
const patience = 20_000;

export class Events {
  // onEvent gets each event; onBack is called after a reconnection; onState gets whether the feed is connected.
  constructor(handlers) {
    this.handlers = handlers;
    this.open();
    document.addEventListener('visibilitychange', () => {
      clearTimeout(this.leaving);
      if (document.visibilityState === 'hidden') this.leaving = setTimeout(() => this.close(), patience);
      else if (!this.source) this.open();
    });
    // The browser may keep a page that was left for the Back button, including its connection.
    addEventListener('pagehide', () => this.close());
    addEventListener('pageshow', (event) => {
      if (event.persisted && !this.source) this.open();
    });
  }

  open() {
    const { onEvent, onBack, onState } = this.handlers;
    this.source = new EventSource('/events');
    this.source.onmessage = (message) => onEvent(parse(message.data));
    this.source.onerror = () => {
      this.away = true;
      onState(false);
    };
    this.source.onopen = () => {
      onState(true);
      if (this.away) onBack();
      this.away = false;
    };
  }

  close() {
    this.source?.close();
    this.source = null;
    this.away = true;
  }
}

function parse(data) {
  try {
    return JSON.parse(data);
  } catch {
    return { type: 'unknown' };
  }
}
