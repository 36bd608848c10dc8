package bot

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/url"

	"countersign/store"
)

// request is a signed request of Slack's, read.
type request struct {
	path      string // where it belongs
	kind      store.InboxKind
	payload   []byte // as a socket would have brought it
	challenge string // to be repeated: Slack asks whether this is the URL for its events
	once      bool   // it does something, and Slack sends it once
}

var errRequest = errors.New("the request is of no kind that Slack sends")

// readRequest reads what a request is: an event is JSON, a command is a form, everything else is JSON in a form's field.
func readRequest(kind string, body []byte) (request, error) {
	if kind == typeJSON {
		return readEventRequest(body)
	}
	form, err := url.ParseQuery(string(body))
	if err != nil {
		return request{}, fmt.Errorf("%w: %w", errRequest, err)
	}
	fields := make(map[string]string, len(form))
	for name, values := range form {
		if len(values) != 1 {
			return request{}, fmt.Errorf("%w: a field is there %d times", errRequest, len(values))
		}
		fields[name] = values[0]
	}
	payload, interactive := fields["payload"]
	switch {
	case interactive && len(fields) == 1:
		return readInteractionRequest([]byte(payload))
	case !interactive && fields["command"] != "":
		raw, err := json.Marshal(fields)
		return request{path: CommandsPath, kind: store.InboxCommand, payload: raw, once: true}, err
	}
	return request{}, fmt.Errorf("%w: a form with neither a payload nor a command", errRequest)
}

func readEventRequest(body []byte) (request, error) {
	var outer struct {
		Type      string `json:"type"`
		Challenge string `json:"challenge"`
	}
	if err := json.Unmarshal(body, &outer); err != nil {
		return request{}, fmt.Errorf("%w: %w", errRequest, err)
	}
	if outer.Type != "url_verification" {
		return request{path: EventsPath, kind: store.InboxEvent, payload: body}, nil
	}
	if outer.Challenge == "" {
		return request{}, fmt.Errorf("%w: a verification without a challenge", errRequest)
	}
	return request{path: EventsPath, challenge: outer.Challenge}, nil
}

func readInteractionRequest(payload []byte) (request, error) {
	var outer struct {
		Type string `json:"type"`
	}
	if err := json.Unmarshal(payload, &outer); err != nil {
		return request{}, fmt.Errorf("%w: %w", errRequest, err)
	}
	if outer.Type == interactionSuggestion { // asked with every letter that somebody types
		return request{path: OptionsPath, kind: store.InboxInteraction, payload: payload}, nil
	}
	return request{path: InteractionsPath, kind: store.InboxInteraction, payload: payload, once: true}, nil
}
