package workspace

import (
	"encoding/json"
	"time"

	"countersign/internal/demo/workspace/wire"
)

// envelope is one delivery: an event, or an interaction that somebody waits for.
type envelope struct {
	id       string
	kind     string // events_api, interactive, slash_commands
	payload  json.RawMessage
	seq      int // in which order deliveries were made
	attempt  int // 0 is the first
	reason   string
	sentTo   *socket
	deaf     bool // its acknowledgement is not heard
	timer    *time.Timer
	answered chan answer // nil for events
}

// answer is the acknowledgement of an interaction, or why there is none.
type answer struct {
	payload json.RawMessage
	err     error
}

// frame is the envelope as it goes over the wire.
func (e *envelope) frame() []byte {
	out := object{
		"envelope_id": e.id, "type": e.kind, "payload": e.payload,
		"accepts_response_payload": e.kind != "events_api",
	}
	if e.kind == "events_api" {
		out["retry_attempt"], out["retry_reason"] = e.attempt, e.reason
	}
	return wire.Encode(out)
}
