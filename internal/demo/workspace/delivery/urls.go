package delivery

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"mime"
	"net/url"
	"strings"

	"countersign/internal/demo/workspace/wire"
)

// RequestURLs are the app's URLs for Slack's requests over HTTP, as on the app's settings page. If all URLs are empty,
// the app uses Socket Mode.
type RequestURLs struct {
	Events        string `yaml:"events" json:"events"`               // event subscriptions
	Interactivity string `yaml:"interactivity" json:"interactivity"` // clicks, shortcuts and forms
	Options       string `yaml:"options" json:"options"`             // options of external selects
	Commands      string `yaml:"commands" json:"commands"`           // every slash command of the app
}

// URLsAt returns RequestURLs with the same URL for all kinds. If the URL ends in a slash, URLsAt appends the name of
// each kind to the URL.
func URLsAt(to string) RequestURLs {
	if strings.HasSuffix(to, "/") {
		return RequestURLs{Events: to + "events", Interactivity: to + "interactions", Options: to + "options", Commands: to + "commands"}
	}
	return RequestURLs{to, to, to, to}
}

// Any reports whether the app receives requests over HTTP.
func (u RequestURLs) Any() bool { return u != RequestURLs{} }

// Validate returns an error for invalid URLs.
func (u RequestURLs) Validate() error {
	var errs []error
	for _, setting := range []struct{ name, url string }{{"events", u.Events}, {"interactivity", u.Interactivity}, {"options", u.Options}, {"commands", u.Commands}} {
		if setting.url == "" {
			continue
		}
		if parsed, err := url.Parse(setting.url); err != nil || parsed.Host == "" || parsed.Scheme != "http" && parsed.Scheme != "https" {
			errs = append(errs, fmt.Errorf("request_urls: %s is %q; write a URL such as http://127.0.0.1:8080/slack/%s", setting.name, setting.url, setting.name))
		}
	}
	return errors.Join(errs...)
}

// of returns the URL to which an envelope is sent, or "" if the app has no URL for this kind of envelope.
func (u RequestURLs) of(e *envelope) string {
	switch e.kind {
	case "events_api":
		return u.Events
	case "slash_commands":
		return u.Commands
	}
	var payload struct {
		Type string `json:"type"`
	}
	if json.Unmarshal(e.payload, &payload) == nil && payload.Type == "block_suggestion" {
		return u.Options
	}
	return u.Interactivity
}

// Challenge sends a random value to a URL, as Slack does before it sends events to the URL. The URL must answer with
// the same value, either as text, or in the field "challenge" of JSON or a form.
func (h *Hub) Challenge(ctx context.Context, to string) error {
	ctx, cancel := context.WithTimeout(ctx, h.cfg.AckTimeout)
	defer cancel()
	want := wire.NewSecret()
	r := outbound{url: to, contentType: typeJSON, body: wire.Encode(object{"token": "local-workspace", "challenge": want, "type": "url_verification"})}
	got, err := h.requests.do(ctx, r)
	if err != nil {
		return err
	}
	if challenged(got) != want {
		return errors.New("it did not answer with the value of the challenge")
	}
	return nil
}

// challenged returns the value that the answer to a challenge contains.
func challenged(r answerOverHTTP) string {
	switch kind, _, _ := mime.ParseMediaType(r.contentType); kind {
	case typeJSON:
		var body struct {
			Challenge string `json:"challenge"`
		}
		_ = json.Unmarshal(r.body, &body) // an unreadable answer has no challenge
		return body.Challenge
	case typeForm:
		form, _ := url.ParseQuery(string(r.body))
		return form.Get("challenge")
	}
	return string(bytes.TrimSpace(r.body))
}
