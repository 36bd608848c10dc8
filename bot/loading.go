package bot

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/slack-go/slack"
)

// The modals that a click on a message opens.
var formTitles = map[string]string{
	actTyped: "Approve", actReject: "Reject", actRejectAll: "Reject all", actWithdrawSome: "Withdraw", actModify: "Modify", actArguments: "All arguments", actHappened: "It happened",
	actAsk: "Ask", actAnswer: "Answer", actComment: "Comment", actHandOn: "Hand on", actTakeBack: "Take back", actAllow: "Allow more", actAway: "Away", actReveal: "Masked values", actFillIn: "Answer a tool", explainShortcut: "Explain this approval",
}

// formOf reports which modal a click opens.
func formOf(i interaction) (string, bool) {
	if i.Type == interactionShortcut {
		return i.Callback, i.TriggerID != ""
	}
	if i.Type != "block_actions" || i.View.modal() || len(i.Actions) == 0 || i.TriggerID == "" {
		return "", false
	}
	_, ok := formTitles[i.Actions[0].ActionID]
	return i.Actions[0].ActionID, ok
}

// openWait bounds the opening of a loading view: its trigger is dead after three seconds.
const openWait = 4 * time.Second

// forms are the loading views under way, by inbox id.
type forms struct {
	mu   sync.Mutex
	open map[string]*opening
}

type opening struct {
	done chan struct{}
	err  error
	at   time.Time
}

// openLoading opens a modal at once, to be filled in by whoever handles the click. Its external id is the click's.
func (b *Bot) openLoading(id, trigger, form string) {
	o := &opening{done: make(chan struct{}), at: b.Now()}
	if !b.forms.add(id, o) {
		return // it came twice: its trigger is used
	}
	b.side.Go(func() {
		defer close(o.done)
		ctx, cancel := context.WithTimeout(withErrand(context.Background(), errand{precedence: urgent}), openWait)
		defer cancel()
		_, o.err = b.api.OpenViewContext(ctx, trigger, loadingView(id, form))
	})
}

// add notes a loading view, unless there is one already.
func (f *forms) add(id string, o *opening) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.open == nil {
		f.open = map[string]*opening{}
	}
	for old, was := range f.open { // clicks that came twice are handled once
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

// loadingView is what a modal shows until it is filled in.
func loadingView(id, form string) slack.ModalViewRequest {
	p := new(page)
	p.para(say("One moment…"))
	p.small("Should nothing appear here, close this and click again.")
	v := modal(formTitles[form], p)
	v.ExternalID = externalID(id)
	return v
}

func externalID(inbox string) string { return "countersign:" + inbox }

// modal makes a view of a page.
func modal(title string, p *page) slack.ModalViewRequest {
	return slack.ModalViewRequest{
		Type: slack.VTModal, Title: plainText(short(title, maxModalTitle)), Close: plainText("Close"), Blocks: slack.Blocks{BlockSet: p.blocks},
	}
}

// errNoForm says that the loading view isn't there: Slack did not open it in time, or the person closed it.
var errNoForm = errors.New("the form is not open")

// fill replaces the loading view of a click by the form.
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
	v.ExternalID = externalID(id)
	_, err := b.api.UpdateViewContext(ctx, v, v.ExternalID, "", "")
	if code := errorCode(err); code == "not_found" || code == "view_not_found" || code == "expired_trigger_id" {
		return fmt.Errorf("%w: %w", errNoForm, err)
	}
	if err != nil {
		return fmt.Errorf("views.update: %w", slow(err))
	}
	b.forms.mu.Lock()
	delete(b.forms.open, id)
	b.forms.mu.Unlock()
	return nil
}
