package workspace

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

// RequestURLs are the app's URLs for Slack's requests over HTTP, as in its settings. If all are empty, the app uses
// Socket Mode.
type RequestURLs struct {
	Events        string `yaml:"events" json:"events"`               // event subscriptions
	Interactivity string `yaml:"interactivity" json:"interactivity"` // clicks, shortcuts and forms
	Options       string `yaml:"options" json:"options"`             // what external selects offer
	Commands      string `yaml:"commands" json:"commands"`           // every slash command of the app
}

// URLsAt returns RequestURLs that are all the same URL. If it ends in a slash, each kind has its own name below it.
func URLsAt(to string) RequestURLs {
	if strings.HasSuffix(to, "/") {
		return RequestURLs{Events: to + "events", Interactivity: to + "interactions", Options: to + "options", Commands: to + "commands"}
	}
	return RequestURLs{to, to, to, to}
}

// any reports whether the app receives requests over HTTP.
func (u RequestURLs) any() bool { return u != RequestURLs{} }

// validate returns an error for invalid URLs.
func (u RequestURLs) validate() error {
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

// of returns the URL of a delivery; empty: none.
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

// SetRequestURLs switches the app to requests over HTTP, like its settings page in Slack; the zero value switches to
// Socket Mode. A URL for events must first answer a challenge; otherwise nothing changes.
func (s *Server) SetRequestURLs(ctx context.Context, urls RequestURLs) error {
	if err := urls.validate(); err != nil {
		return err
	}
	if urls.any() && s.app.SigningSecret == "" {
		return errors.New("the app has no signing secret; give it one in the seed (app: signing_secret)")
	}
	if urls.Events != "" {
		if err := s.challenge(ctx, urls.Events); err != nil {
			return fmt.Errorf("the URL for events was not verified: %w", err)
		}
	}
	s.hub.use(urls)
	return nil
}

// challenge asks a URL to repeat a random value, as Slack does before it sends events there. The answer is text, or
// "challenge" in JSON or a form.
func (s *Server) challenge(ctx context.Context, to string) error {
	ctx, cancel := context.WithTimeout(ctx, s.cfg.AckTimeout)
	defer cancel()
	want := wire.NewSecret()
	r := outbound{url: to, contentType: typeJSON, body: wire.Encode(object{"token": "local-workspace", "challenge": want, "type": "url_verification"})}
	got, err := s.hub.requests.do(ctx, r)
	if err != nil {
		return err
	}
	if challenged(got) != want {
		return errors.New("it did not answer with the value of the challenge")
	}
	return nil
}

// challenged returns the value repeated by an answer.
func challenged(r answerOverHTTP) string {
	switch kind, _, _ := mime.ParseMediaType(r.contentType); kind {
	case typeJSON:
		var body struct {
			Challenge string `json:"challenge"`
		}
		_ = json.Unmarshal(r.body, &body) // an unreadable answer repeats nothing
		return body.Challenge
	case typeForm:
		form, _ := url.ParseQuery(string(r.body))
		return form.Get("challenge")
	}
	return string(bytes.TrimSpace(r.body))
}

// postRequestURLs is POST /app/request_urls.
func (s *Server) postRequestURLs(p *personCall) (object, *apiError) {
	var urls RequestURLs
	err := rebind(p.values, &urls)
	if err == nil {
		err = s.SetRequestURLs(p.r.Context(), urls)
	}
	if err != nil {
		return nil, refuse("invalid_request_url", err.Error())
	}
	return object{"request_urls": urls}, nil
}
