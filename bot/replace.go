package bot

import (
	"context"
	"sync"
	"time"

	"github.com/slack-go/slack"

	"countersign/approvers"
	"countersign/approvers/workflow"
	"countersign/bot/render"
	"countersign/store"
)

// A click contains an address with which the clicked message can be replaced. Using it does not count towards
// chat.update's limit. When updates are scarce, a decided card is therefore updated through it. The addresses are kept
// only in memory, and any error falls back to chat.update.

// Slack accepts five responses per address within half an hour. Some are left for notices to the person who clicked.
const (
	replaceTimes = 3
	replaceFor   = 29 * time.Minute
	maxReplaced  = 1000 // outbox messages
)

// replacing holds the addresses with which messages can be replaced, by outbox message.
type replacing struct {
	mu sync.Mutex
	by map[string]replaceAt
}

type replaceAt struct {
	url   string
	until time.Time
	left  int
}

// clicked records the address from a click on an outbox message.
func (r *replacing) clicked(surface, url string, at time.Time) {
	if url == "" {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.by == nil {
		r.by = map[string]replaceAt{}
	}
	if _, known := r.by[surface]; !known && len(r.by) >= maxReplaced {
		for id, old := range r.by {
			if !old.until.After(at) {
				delete(r.by, id)
			}
		}
		if len(r.by) >= maxReplaced {
			return
		}
	}
	r.by[surface] = replaceAt{url: url, until: at.Add(replaceFor), left: replaceTimes}
}

// take uses an address of an outbox message once, if there is one.
func (r *replacing) take(surface string, now time.Time) (url string, ok bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	at, known := r.by[surface]
	if !known {
		return "", false
	}
	if at.left--; at.left <= 0 || !at.until.After(now) {
		delete(r.by, surface)
	} else {
		r.by[surface] = at
	}
	return at.url, at.until.After(now)
}

// change updates the message of an outbox message. It uses the address of a click if updates are scarce, and
// chat.update otherwise.
func (b *Bot) change(ctx context.Context, vm workflow.ViewModel, d render.Rendered) error {
	s := vm.Message
	if decided(vm) && b.api.UpdatesScarce() {
		if url, ok := b.replaced.take(s.ID, b.Now()); ok {
			_, _, err := b.api.PostMessageContext(ctx, s.Channel, append(options(s, d.Messages[0], 0), slack.MsgOptionReplaceOriginal(url))...)
			if err == nil {
				return nil
			}
			b.Log.Debug("a message could not be replaced by the address of a click; it is changed instead", "message", string(s.Kind), "error", err)
		}
	}
	return b.update(ctx, s, d)
}

// decided reports whether an outbox message is a card without open decisions. A card that still waits needs
// chat.update, which also shows whether the message still exists.
func decided(s workflow.ViewModel) bool {
	switch s.Message.Kind {
	case store.OutboxCard, store.OutboxEscalation:
		return s.Request.State != approvers.Pending
	case store.OutboxBundle:
		return len((render.View{ViewModel: s}).Undecided()) == 0
	}
	return false
}
