package bot

import (
	"context"
	"errors"
	"maps"
	"slices"
	"sync"
	"time"

	"countersign/bot/render/block"
	"countersign/bot/render/form"
	"countersign/bot/transport"
	"countersign/store"
)

// While the store can't be written, people get one of these notices.
const (
	fullDisk     = "The disk on which I store everything is full. The operator of this bot finds this in the log."
	movedFile    = "The file in which I store everything is missing. The operator of this bot finds this in the log."
	awayDatabase = "The database in which I store everything does not answer. The operator of this bot finds this in the log."
)

// storeNotice returns the notice for a store error.
func storeNotice(cause error) string {
	if errors.Is(cause, store.ErrMoved) {
		return movedFile
	}
	if errors.Is(cause, store.ErrUnavailable) && !errors.Is(cause, store.ErrFull) {
		return awayDatabase
	}
	return fullDisk
}

// refuseFull tells a person that their action could not be stored, because the disk is full, the store's file is
// missing, or the database does not answer. For a command or a submitted form, the acknowledgement contains the notice.
// The bot does not acknowledge other deliveries. So Slack shows its own error, and the person gets a separate notice.
func (b *Receiver) refuseFull(d transport.Delivery, cause error) (answer any, err error) {
	switch d.Kind {
	case store.InboxCommand:
		return map[string]any{"response_type": "ephemeral", "text": "Nothing was done. " + storeNotice(cause) + " Please try again in a few minutes."}, nil
	case store.InboxInteraction:
		if i, err := readInteraction(d.Payload); err == nil {
			return b.refuseInteraction(i, d.Payload, cause)
		}
	case store.InboxEvent:
		if e, err := readEnvelope(d.Payload); err == nil {
			b.tellDiskFull(e.Event, cause)
		}
	}
	return nil, cause
}

func (b *Receiver) refuseInteraction(i interaction, payload []byte, cause error) (answer any, err error) {
	if i.Type == "view_submission" {
		return refuseForm(i, block.Say("Nothing was decided. "+storeNotice(cause)+" Please close this and try again in a few minutes."),
			"This was not sent. "+storeNotice(cause)+" What you wrote stays here: send it again in a few minutes."), nil
	}
	why := block.Say("Nothing was done: I could not store your click. " + storeNotice(cause) + " Please click again in a few minutes.")
	b.side.Go(func() {
		ctx, cancel := context.WithTimeout(context.Background(), openWait)
		defer cancel()
		if action, wants := formOf(i); wants && b.modals.fill(ctx, i.id(payload), b.Now(), form.TextModal(action, why)) == nil {
			return
		}
		channel, _ := i.message()
		b.ephemeral.reply(ctx, ephemeralReply{user: i.User.ID, channel: channel, thread: i.Posted.ThreadTS, responseURL: i.ResponseURL}, why)
	})
	return nil, cause
}

// refuseForm rejects an otherwise valid form. The form shows the error at its first field, so the person keeps their
// input. If the form has no fields, a view replaces the form. The parameter "instead" is the text of this view.
func refuseForm(i interaction, instead *block.RichText, beside string) (answer any) {
	fields := slices.Sorted(maps.Keys(i.View.State.Values))
	if len(fields) == 0 {
		return map[string]any{"response_action": "update", "view": form.TextModal(i.View.Callback, instead)}
	}
	return map[string]any{"response_action": "errors", "errors": map[string]string{fields[0]: beside}}
}

// tellDiskFull tells a person that their message to the bot could not be stored. Slack redelivers the message a few
// times, but a person gets only one notice in diskFullNoticeEvery.
func (b *Receiver) tellDiskFull(e event, cause error) {
	me, known := b.self.known()
	fresh := e.Type == "app_mention" || e.dm() || known && mentions(e.Text, me.User)
	if !fresh || !readable[e.Subtype] || !b.diskFullNotices.first(b.Now(), e.userID()) {
		return
	}
	b.side.Go(func() {
		ctx, cancel := context.WithTimeout(context.Background(), openWait)
		defer cancel()
		b.ephemeral.reply(ctx, ephemeralReply{user: e.userID(), channel: e.channelID(), thread: e.ThreadTS}, block.Say("I could not store what you wrote. "+storeNotice(cause)+
			" If this is fixed within the next minutes, I will still answer. If you get no answer, please write it again."))
	})
}

// diskFullNoticeEvery is the minimum time between two disk-full notices to one person.
const diskFullNoticeEvery = 10 * time.Minute

// diskFullNotices tracks the people who recently got the notice.
type diskFullNotices struct {
	mu sync.Mutex
	at map[string]time.Time
}

// first returns true if a person did not get the notice recently. first then records that the person gets the notice
// now.
func (u *diskFullNotices) first(now time.Time, user string) bool {
	u.mu.Lock()
	defer u.mu.Unlock()
	maps.DeleteFunc(u.at, func(_ string, told time.Time) bool { return now.Sub(told) > diskFullNoticeEvery })
	if _, told := u.at[user]; told {
		return false
	}
	if u.at == nil {
		u.at = map[string]time.Time{}
	}
	u.at[user] = now
	return true
}
