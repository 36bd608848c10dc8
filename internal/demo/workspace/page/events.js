// The live feed. An event only says which part of the state to read. The page never takes state from an event.

// A browser opens at most six connections to one address. A hidden tab therefore closes its connection after a while.
// So a tester can open seven tabs, one for each person.
const patience = 20_000;

export class Events {
  // onEvent gets each event. onBack is called after a reconnection. onState gets whether the feed is connected.
  constructor(handlers) {
    this.handlers = handlers;
    this.open();
    document.addEventListener('visibilitychange', () => {
      clearTimeout(this.leaving);
      if (document.visibilityState === 'hidden') this.leaving = setTimeout(() => this.close(), patience);
      else if (!this.source) this.open();
    });
    // When a person leaves the page, the browser may keep the page with its connection for the Back button.
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
