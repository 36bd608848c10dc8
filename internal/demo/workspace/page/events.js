// The live feed. What an event says is only what to read again; the page never keeps state from it.

// A browser opens no more than six connections to one address. Tabs that nobody looks at give theirs back after a while,
// so that somebody who opens a tab for each person isn't stuck with the seventh.
const patience = 20_000;

export class Events {
  // onEvent gets each event; onBack is called when the line was away and is there again; onState tells whether it is there.
  constructor(handlers) {
    this.handlers = handlers;
    this.open();
    document.addEventListener('visibilitychange', () => {
      clearTimeout(this.leaving);
      if (document.visibilityState === 'hidden') this.leaving = setTimeout(() => this.close(), patience);
      else if (!this.source) this.open();
    });
    // A page that was left may be kept for the Back button, with its connection.
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
