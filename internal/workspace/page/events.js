// The live feed. What an event says is only what to read again; the page never keeps state from it.

export class Events {
  // onEvent gets each event; onBack is called when the line was lost and is there again; onState tells whether it is there.
  constructor({ onEvent, onBack, onState }) {
    let lost = false;
    this.source = new EventSource('/events');
    this.source.onmessage = (message) => onEvent(parse(message.data));
    this.source.onerror = () => {
      lost = true;
      onState(false);
    };
    this.source.onopen = () => {
      onState(true);
      if (lost) onBack();
      lost = false;
    };
  }
}

function parse(data) {
  try {
    return JSON.parse(data);
  } catch {
    return { type: 'unknown' };
  }
}
