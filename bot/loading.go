package bot

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"countersign/bot/render"
	"countersign/bot/slackapi"

	"github.com/slack-go/slack"
)

// formOf returns the modal that a click opens.
func formOf(i interaction) (string, bool) {
	if i.Type == interactionShortcut {
		return i.Callback, i.TriggerID != ""
	}
	if i.Type != "block_actions" || i.View.modal() || len(i.Actions) == 0 || i.TriggerID == "" {
		return "", false
	}
	_, ok := render.FormTitles[i.Actions[0].ActionID]
	return i.Actions[0].ActionID, ok
}

// openWait is the time limit for opening a loading view. Its trigger expires after three seconds.
const openWait = 4 * time.Second

// forms tracks loading views, by inbox id.
type forms struct {
	mu   sync.Mutex
	open map[string]*opening
}

type opening struct {
	done chan struct{}
	err  error
	at   time.Time
}

// openLoading opens a modal immediately; the handler of the click fills it in. Its external id is the click's id.
func (b *Bot) openLoading(id, trigger, form string) {
	o := &opening{done: make(chan struct{}), at: b.Now()}
	if !b.forms.add(id, o) {
		return // a duplicate: its trigger has been used
	}
	b.side.Go(func() {
		defer close(o.done)
		ctx, cancel := context.WithTimeout(slackapi.WithCallPriority(context.Background(), slackapi.CallPriority{Priority: slackapi.PriorityUrgent}), openWait)
		defer cancel()
		_, o.err = b.api.OpenViewContext(ctx, trigger, render.LoadingView(id, form))
	})
}

// add registers a loading view, unless there is one already.
func (f *forms) add(id string, o *opening) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.open == nil {
		f.open = map[string]*opening{}
	}
	for old, was := range f.open { // clicks delivered twice are handled once
		if o.at.Sub(was.at) > time.Minute {
			delete(f.open, old)
		}
	}
	if f.open[id] != nil {
		return false
	}
	f.open[id] = o
	return true
}

// errNoForm says that the loading view does not exist: Slack did not open it in time, or the person closed it.
var errNoForm = errors.New("the form is not open")

// fill replaces the loading view of a click with the form.
func (b *Bot) fill(ctx context.Context, id string, v slack.ModalViewRequest) error {
	b.forms.mu.Lock()
	o := b.forms.open[id]
	b.forms.mu.Unlock()
	if o != nil {
		select {
		case <-o.done:
		case <-ctx.Done():
			return ctx.Err()
		}
		if o.err != nil {
			return fmt.Errorf("%w: %w", errNoForm, o.err)
		}
	}
	v.ExternalID = render.ExternalID(id)
	_, err := b.api.UpdateViewContext(ctx, v, v.ExternalID, "", "")
	if code := slackapi.ErrorCode(err); code == "not_found" || code == "view_not_found" || code == "expired_trigger_id" {
		return fmt.Errorf("%w: %w", errNoForm, err)
	}
	if err != nil {
		return fmt.Errorf("views.update: %w", slackapi.WithDelay(err))
	}
	b.forms.mu.Lock()
	delete(b.forms.open, id)
	b.forms.mu.Unlock()
	return nil
}
