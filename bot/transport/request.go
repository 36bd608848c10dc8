package transport

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/url"

	"countersign/store"
)

// request is a parsed signed request from Slack.
type request struct {
	path      string // the path to which Slack must send the request
	kind      store.InboxKind
	payload   []byte // JSON, as a socket would deliver it
	challenge string // the response must contain this value, because Slack or the command doctor verifies the URL
	ping      bool   // the request checks only the server's certificate, and contains no delivery
	once      bool   // the request has an effect, and Slack sends it only once
}

// urlVerification is the type of a request with a challenge. The response must return the challenge. Slack sends such a
// request to the URL for events. The command doctor also sends such a request as an interaction and as a command.
const urlVerification = "url_verification"

// Challenge returns a request that changes nothing. A Request URL with the given path answers the challenge with value.
func Challenge(path, value string) (media string, body []byte, err error) {
	asked, err := json.Marshal(map[string]string{"type": urlVerification, "challenge": value})
	switch path {
	case InteractionsPath:
		return typeForm, []byte(url.Values{"payload": {string(asked)}}.Encode()), err
	case CommandsPath:
		return typeForm, []byte(url.Values{"command": {urlVerification}, "challenge": {value}}.Encode()), err
	}
	return typeJSON, asked, err
}

// certificateCheck is the field that marks Slack's occasional check of the certificate of a command's URL.
const certificateCheck = "ssl_check"

// menuOptions is the type of an interaction in which a menu asks for its options.
const menuOptions = "block_suggestion"

var errRequest = errors.New("the request is not of a kind that Slack sends")

// readRequest parses a request. Events are JSON, commands are a form, and all other requests are JSON in a form field.
func readRequest(media string, body []byte) (request, error) {
	if media == typeJSON {
		return readEventRequest(body)
	}
	form, err := url.ParseQuery(string(body))
	if err != nil {
		return request{}, fmt.Errorf("%w: %w", errRequest, err)
	}
	fields := make(map[string]string, len(form))
	for name, values := range form {
		if len(values) != 1 {
			return request{}, fmt.Errorf("%w: a field occurs %d times", errRequest, len(values))
		}
		fields[name] = values[0]
	}
	payload, interactive := fields["payload"]
	switch {
	case interactive && len(fields) == 1:
		return readInteractionRequest([]byte(payload))
	case !interactive && fields["command"] == urlVerification && fields["challenge"] != "":
		return request{path: CommandsPath, challenge: fields["challenge"]}, nil
	case !interactive && fields["command"] != "":
		raw, err := json.Marshal(fields)
		return request{path: CommandsPath, kind: store.InboxCommand, payload: raw, once: true}, err
	case !interactive && fields[certificateCheck] == "1":
		return request{path: CommandsPath, ping: true}, nil
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
	if outer.Type != urlVerification {
		return request{path: EventsPath, kind: store.InboxEvent, payload: body}, nil
	}
	if outer.Challenge == "" {
		return request{}, fmt.Errorf("%w: a verification without a challenge", errRequest)
	}
	return request{path: EventsPath, challenge: outer.Challenge}, nil
}

func readInteractionRequest(payload []byte) (request, error) {
	var outer struct {
		Type      string `json:"type"`
		Challenge string `json:"challenge"`
	}
	if err := json.Unmarshal(payload, &outer); err != nil {
		return request{}, fmt.Errorf("%w: %w", errRequest, err)
	}
	if outer.Type == urlVerification && outer.Challenge != "" {
		return request{path: InteractionsPath, challenge: outer.Challenge}, nil
	}
	if outer.Type == menuOptions { // Slack sends such a request for each character that a person types
		return request{path: OptionsPath, kind: store.InboxInteraction, payload: payload}, nil
	}
	return request{path: InteractionsPath, kind: store.InboxInteraction, payload: payload, once: true}, nil
}
