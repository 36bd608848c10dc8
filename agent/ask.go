package agent

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"
	"unicode/utf8"

	"countersign/approvers"
	"countersign/approvers/workflow"
)

// Limits on a form.
const (
	maxQuestion   = 2000     // characters of the question
	maxFormSchema = 16 << 10 // bytes
	maxFormFields = 20
	maxFormURL    = 2000 // bytes
)

// ErrForm means that nobody was shown the form. The wrapping error says what to change in the form, or why no form can
// be shown at the moment.
var ErrForm = errors.New("nobody was asked")

// ask returns the function with which a running tool shows a form to the requester of the call. The run's timer is
// paused while the form waits for an answer, because the form has its own time limit. When the run ends, the form
// ends too. If a person declines a form, the function sets refused.
func (a *Agent) ask(run, inner context.Context, e approvers.Execution, watch *runTimer, refused *atomic.Bool) func(context.Context, Form) (Reply, error) {
	return func(ctx context.Context, f Form) (Reply, error) {
		ask, err := formOf(f)
		if err != nil {
			return Reply{}, err
		}
		waiting, end := context.WithCancelCause(ctx)
		defer end(nil)
		// At a shutdown, run ends at once, but inner ends only after the tool's grace period. A form has no grace
		// period.
		for _, also := range []context.Context{inner, run} {
			defer context.AfterFunc(also, func() { end(context.Cause(also)) })()
		}
		watch.hold()
		defer watch.resume()
		q, err := a.Questions.Elicit(waiting, e.ID, ask, func() string { return whyEnded(waiting) })
		switch {
		case errors.Is(err, workflow.ErrNotDue), errors.Is(err, workflow.ErrPaused):
			return Reply{Action: ReplyCancelled}, nil
		case errors.Is(err, workflow.ErrTooManyElicitations):
			return Reply{}, fmt.Errorf("%w: %w", ErrForm, workflow.ErrTooManyElicitations)
		case errors.Is(err, workflow.ErrTooManyWait):
			return Reply{}, fmt.Errorf("%w: %w", ErrForm, workflow.ErrTooManyWait)
		case err != nil:
			return Reply{Action: ReplyCancelled}, fmt.Errorf("%w: %w", ErrForm, err)
		}
		switch q.State {
		case approvers.ElicitationAccepted:
			return Reply{Action: ReplyAccepted, Values: q.Values}, nil
		case approvers.ElicitationDeclined:
			refused.Store(true)
			return Reply{Action: ReplyDeclined}, nil
		}
		return Reply{Action: ReplyCancelled}, nil
	}
}

// declined is the error of a tool if a person has declined a form of the run.
type declined struct{ error }

func (d declined) Unwrap() error { return d.error }

// whyEnded returns the reason why the wait for an answer ended, as a part of a sentence for people.
func whyEnded(ctx context.Context) string {
	switch cause := context.Cause(ctx); {
	case errors.Is(cause, workflow.ErrPaused):
		return "everything was paused"
	case errors.Is(cause, workflow.ErrStopped):
		return "the agent was stopped"
	case errors.Is(cause, errTimeUp):
		return "the tool's time was over"
	case errors.Is(cause, context.Canceled):
		return "its tool did not wait any longer, or the bot is being stopped"
	}
	return "its tool did not wait any longer"
}

// formOf validates a form and converts the form for the workflow.
func formOf(f Form) (workflow.Elicitation, error) {
	ask := workflow.Elicitation{From: f.From, Text: strings.ToValidUTF8(f.Text, "\uFFFD"), Schema: f.Schema, URL: f.URL}
	wrong := func(format string, args ...any) (workflow.Elicitation, error) {
		return ask, fmt.Errorf("%w: %s", ErrForm, fmt.Sprintf(format, args...))
	}
	if n := utf8.RuneCountInString(ask.Text); strings.TrimSpace(ask.Text) == "" || n > maxQuestion {
		return wrong("the question has %d characters; it must have 1 to %d", n, maxQuestion)
	}
	if f.URL != "" {
		if f.Schema != nil {
			return wrong("the question has a form and a URL, and may have only one of them")
		}
		if err := checkAddress(f.URL); err != nil {
			return wrong("%s", err)
		}
		return ask, nil
	}
	if len(f.Schema) > maxFormSchema {
		return wrong("the form's schema has %d bytes, and may have %d", len(f.Schema), maxFormSchema)
	}
	checked, _ := WithoutPatterns(f.Schema)
	if _, err := compileSchema(checked); err != nil {
		return wrong("%s", err)
	}
	if err := checkFlat(f.Schema); err != nil {
		return wrong("%s", err)
	}
	return ask, nil
}

// checkAddress returns an error for an address that the bot must not show to a person.
func checkAddress(text string) error {
	u, err := url.Parse(text)
	switch {
	case err != nil || u.Hostname() == "" || len(text) > maxFormURL:
		return fmt.Errorf("the URL can't be parsed, or is longer than %d bytes", maxFormURL)
	case u.User != nil:
		return errors.New("the URL has a user name or a password in it")
	case u.Scheme == "http" && slices.Contains([]string{"localhost", "127.0.0.1", "::1"}, u.Hostname()):
		return nil
	case u.Scheme != "https":
		return errors.New("the URL must begin with https://")
	case strings.ContainsFunc(u.Host, func(r rune) bool { return r < '!' || r > '~' }):
		return errors.New("the URL's host has letters that are not ASCII; write it as xn--…")
	}
	return nil
}

// checkFlat returns an error if a form can't show a field, or if the number of fields is not allowed.
func checkFlat(schema json.RawMessage) error {
	var s struct {
		Properties map[string]struct {
			Type  string `json:"type"`
			Items struct {
				Enum  []json.RawMessage `json:"enum"`
				OneOf []json.RawMessage `json:"oneOf"`
				AnyOf []json.RawMessage `json:"anyOf"`
			} `json:"items"`
		} `json:"properties"`
	}
	if err := json.Unmarshal(schema, &s); err != nil {
		return fmt.Errorf("the form must be an object of plain fields: %w", err)
	}
	if len(s.Properties) == 0 || len(s.Properties) > maxFormFields {
		return fmt.Errorf("the form has %d fields; it must have 1 to %d", len(s.Properties), maxFormFields)
	}
	for name, p := range s.Properties {
		switch p.Type {
		case "string", "number", "integer", "boolean":
		case "array":
			if len(p.Items.Enum)+len(p.Items.OneOf)+len(p.Items.AnyOf) == 0 {
				return fmt.Errorf("the field %.60q is a list whose items are not a fixed choice of values; forms have plain fields", name)
			}
		default:
			return fmt.Errorf("the field %.60q is of the type %.20q; forms have texts, numbers, yes or no, and choices", name, p.Type)
		}
	}
	return nil
}

// Admits validates submitted values against the schema of a form, without the patterns that [WithoutPatterns] removes.
// An example of an error is "amount: must be at least 0.01".
func Admits(schema, values json.RawMessage) error {
	checked, _ := WithoutPatterns(schema)
	s, err := compileSchema(checked)
	if err != nil {
		return err
	}
	return s.check(values)
}

// runTimer ends a run after the time limit of the tool. The timer is paused while a form waits for an answer.
type runTimer struct {
	mu     sync.Mutex
	timer  *time.Timer
	since  time.Time // when the timer was last started
	left   time.Duration
	holds  int
	fired  bool
	timeUp func()
}

func newRunTimer(d time.Duration, timeUp func()) *runTimer {
	w := &runTimer{since: time.Now(), left: d, timeUp: timeUp}
	w.timer = time.AfterFunc(d, w.fire)
	return w
}

// fire is called when the time is up. fire ends the run. If the timer was paused at the same moment, fire does
// nothing.
func (w *runTimer) fire() {
	w.mu.Lock()
	up := w.holds == 0
	w.fired = up
	w.mu.Unlock()
	if up {
		w.timeUp()
	}
}

func (w *runTimer) hold() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.holds++; w.holds == 1 && !w.fired {
		w.timer.Stop()
		w.left -= time.Since(w.since)
	}
}

// resume restarts the timer when the last hold is released.
func (w *runTimer) resume() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.holds--; w.holds == 0 && !w.fired {
		w.since = time.Now()
		w.timer.Reset(max(w.left, 0))
	}
}

// end stops the timer when the run is over.
func (w *runTimer) end() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.fired = true
	w.timer.Stop()
}
