package bot

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/slack-go/slack"

	"countersign/bot/render/block"
	"countersign/bot/render/control"
	"countersign/bot/render/form"
	"countersign/bot/slackapi"
)

// openWait is the time limit for opening a loading view. The limit is short, because the click's trigger id expires
// after three seconds.
const openWait = 4 * time.Second

// openAgain is the pause between two tries to fill a loading view that another replica opens.
const openAgain = 200 * time.Millisecond

// modals opens and fills modals. Slack opens a modal only within three seconds of a click. So modals opens a loading
// view at once, and fills it when the click is handled. modals does not know the subject of a form.
type modals struct {
	*core
	replicas *Replicas

	mu   sync.Mutex
	open map[string]*opening // the loading views that this process opened, by inbox id
}

// opening is a loading view that this process opened, or tries to open.
type opening struct {
	done chan struct{}
	err  error
	at   time.Time
}

// formOf returns the modal that a click opens.
func formOf(i interaction) (string, bool) {
	if i.Type == interactionShortcut {
		return i.Callback, i.TriggerID != ""
	}
	if i.Type != "block_actions" || i.View.modal() || len(i.Actions) == 0 || i.TriggerID == "" {
		return "", false
	}
	action := control.ActionOf(i.Actions[0].ActionID)
	_, ok := form.Titles[action]
	return action, ok
}

// openLoading immediately opens a modal with a loading text. The handler of the click later replaces the modal's
// content. The modal's external id is the click's id.
func (b *modals) openLoading(id, trigger, action string) {
	o := &opening{done: make(chan struct{}), at: b.Now()}
	if !b.add(id, o) {
		return // a duplicate delivery, whose trigger id is already used
	}
	b.side.Go(func() {
		defer close(o.done)
		ctx, cancel := context.WithTimeout(slackapi.WithCallPriority(context.Background(), slackapi.CallPriority{Priority: slackapi.PriorityUrgent}), openWait)
		defer cancel()
		_, o.err = b.api.OpenViewContext(ctx, trigger, form.LoadingView(id, action))
	})
}

// add registers a loading view. If a loading view with this id is registered, add returns false.
func (b *modals) add(id string, o *opening) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.open == nil {
		b.open = map[string]*opening{}
	}
	for old, was := range b.open { // entries are kept for a minute, so that a click that is delivered twice opens only one modal
		if o.at.Sub(was.at) > time.Minute {
			delete(b.open, old)
		}
	}
	if b.open[id] != nil {
		return false
	}
	b.open[id] = o
	return true
}

var (
	// errNoForm says that the loading view does not exist: Slack did not open it, or the person closed it.
	errNoForm = errors.New("the form is not open")
	// errFormRefused says that Slack refused the form. The person sees the refusal in place of the loading view.
	errFormRefused = errors.New("Slack refused the form")
)

// formRefusal returns Slack's code if Slack refused a form permanently. formRefusal returns "" if another click may
// help.
func formRefusal(err error) string {
	code := slackapi.ErrorCode(err)
	switch code {
	case "expired_trigger_id", "trigger_expired", "exchanged_trigger_id", "trigger_exchanged", "not_found", "view_not_found", "hash_conflict":
		return ""
	}
	if !slackapi.IsRefused(err) {
		return ""
	}
	return cmp.Or(code, "no such method")
}

// triggerUsed reports whether Slack refused to open a loading view because a view was already opened with the click's
// trigger id, or with the view's external id. Another replica opens the view if the click reached both replicas.
func triggerUsed(err error) bool {
	code := slackapi.ErrorCode(err)
	return code == "exchanged_trigger_id" || code == "trigger_exchanged" || code == "duplicate_external_id"
}

// fill replaces the loading view of a click with the form. The parameter "at" is the time of the click. If Slack
// refuses the form, fill shows the refusal instead.
func (b *modals) fill(ctx context.Context, id string, at time.Time, v slack.ModalViewRequest) error {
	b.mu.Lock()
	o := b.open[id]
	b.mu.Unlock()
	elsewhere := o == nil // another replica may open the loading view
	if o != nil {
		select {
		case <-o.done:
		case <-ctx.Done():
			return ctx.Err()
		}
		if elsewhere = triggerUsed(o.err); o.err != nil && !elsewhere {
			b.logRefused(ctx, id, "views.open", v, o.err)
			return fmt.Errorf("%w: %w", errNoForm, o.err)
		}
	}
	show := func() error {
		return b.show(ctx, id, v, func(v slack.ModalViewRequest) error {
			v.ExternalID = form.ExternalID(id)
			_, err := b.api.UpdateViewContext(ctx, v, v.ExternalID, "", "")
			return err
		})
	}
	err := show()
	if elsewhere && b.replicas.others() {
		for errors.Is(err, errNoForm) && b.Now().Sub(at) < openWait {
			if stopped := slackapi.Sleep(ctx, openAgain); stopped != nil {
				return stopped
			}
			err = show()
		}
	}
	if err != nil {
		return err
	}
	b.mu.Lock()
	delete(b.open, id)
	b.mu.Unlock()
	return nil
}

// show replaces the content of an open modal with a form. If Slack refuses the form, show shows the refusal instead,
// and logs Slack's reason. inbox is the id of the click's delivery.
func (b *modals) show(ctx context.Context, inbox string, v slack.ModalViewRequest, update func(slack.ModalViewRequest) error) error {
	cause := update(v)
	code := formRefusal(cause)
	switch {
	case cause == nil:
		return nil
	case code == "":
		return notUpdated(cause)
	}
	b.logRefused(ctx, inbox, "views.update", v, cause)
	if update(form.SlackRefusedModal(v.Title.Text, code)) != nil {
		return fmt.Errorf("%w: %w", errNoForm, cause)
	}
	return fmt.Errorf("%w: %w", errFormRefused, cause)
}

// logRefused logs a form that Slack refused permanently, with Slack's reason.
func (b *modals) logRefused(ctx context.Context, inbox, method string, v slack.ModalViewRequest, cause error) {
	if formRefusal(cause) != "" {
		b.Log.ErrorContext(ctx, "Slack refused a form", "inbox", inbox, "method", method, "form", v.Title.Text, "cause", slackapi.Explain(cause))
	}
}

// formNotOpened tells a person that a click opened no form.
func formNotOpened(cause error) *block.RichText {
	if code := formRefusal(cause); code != "" {
		return form.SlackRefusedText(code)
	}
	return block.Say("The form could not be opened in time. Please click again.")
}

// notUpdated returns the error for a modal that was not updated. notUpdated wraps errNoForm if the modal is closed or
// has changed.
func notUpdated(err error) error {
	switch slackapi.ErrorCode(err) {
	case "not_found", "view_not_found", "expired_trigger_id", "hash_conflict":
		return fmt.Errorf("%w: %w", errNoForm, err)
	}
	return fmt.Errorf("views.update: %w", slackapi.WithDelay(err))
}

// updateClicked replaces the modal in which a person clicked.
func (b *modals) updateClicked(ctx context.Context, v slack.ModalViewRequest, i interaction) error {
	_, err := b.api.UpdateViewContext(ctx, v, "", i.View.Hash, i.View.ID)
	return err
}
