package bot

import (
	"context"
	"maps"
	"slices"
	"sync"
	"time"

	"countersign/store"
)

// Why nothing can be taken in while the disk is full, as people read it.
const fullDisk = "The disk on which I write everything down is full, and whoever runs me is told so in my log."

// refuseFull says to a person that what they did could not be stored, because the disk is full. Where Slack shows it to them the acknowledgement refuses it;
// anything else is not acknowledged, which Slack shows in its own way, and they are told besides.
func (b *Bot) refuseFull(kind store.InboxKind, payload []byte, cause error) (ack, error) {
	switch kind {
	case store.InboxCommand:
		return ack{map[string]any{"response_type": "ephemeral", "text": "Nothing was done. " + fullDisk + " Please try again in a few minutes."}}, nil
	case store.InboxInteraction:
		if i, err := readInteraction(payload); err == nil {
			return b.refuseInteraction(i, payload, cause)
		}
	case store.InboxEvent:
		if e, err := readEnvelope(payload); err == nil {
			b.tellUnheard(e.Event)
		}
	}
	return ack{}, cause
}

func (b *Bot) refuseInteraction(i interaction, payload []byte, cause error) (ack, error) {
	if i.Type == "view_submission" {
		return refuseForm(i, say("Nothing was decided. "+fullDisk+" Please close this and try again in a few minutes."),
			"This was not sent. "+fullDisk+" What you wrote stays here: send it again in a few minutes."), nil
	}
	why := say("Nothing was done: I could not take your click in. " + fullDisk + " Please click again in a few minutes.")
	b.side.Go(func() {
		ctx, cancel := context.WithTimeout(context.Background(), openWait)
		defer cancel()
		if form, wants := formOf(i); wants && b.fill(ctx, i.id(payload), refusal(form, why)) == nil {
			return
		}
		channel, _ := i.message()
		b.tell(ctx, whisper{user: i.User.ID, channel: channel, thread: i.Posted.ThreadTS, responseURL: i.ResponseURL}, why)
	})
	return ack{}, cause
}

// refuseForm answers a form that nothing is wrong with in itself: beside its first field, so that what was written stays, or in its place where it has none.
func refuseForm(i interaction, instead *prose, beside string) ack {
	fields := slices.Sorted(maps.Keys(i.View.State.Values))
	if len(fields) == 0 {
		return ack{map[string]any{"response_action": "update", "view": refusal(i.View.Callback, instead)}}
	}
	return ack{map[string]any{"response_action": "errors", "errors": map[string]string{fields[0]: beside}}}
}

// tellUnheard tells somebody that what they wrote to the bot could not be stored. Slack delivers it again a few times, and they are told once.
func (b *Bot) tellUnheard(e event) {
	me, known := b.self.known()
	fresh := e.Type == "app_mention" || e.dm() || known && mentions(e.Text, me.User)
	if !fresh || !readable[e.Subtype] || !b.unheard.first(b.Now(), e.userID()) {
		return
	}
	b.side.Go(func() {
		ctx, cancel := context.WithTimeout(context.Background(), openWait)
		defer cancel()
		b.tell(ctx, whisper{user: e.userID(), channel: e.channelID(), thread: e.ThreadTS}, say("I could not take in what you wrote. "+fullDisk+
			" If there is space again within the next minutes I answer by myself; if I don't, please write it again."))
	})
}

// unheardAgain is how long a person is not told again that the disk is full, whatever they write.
const unheardAgain = 10 * time.Minute

// unheard notes whom it was told lately.
type unheard struct {
	mu sync.Mutex
	at map[string]time.Time
}

// first reports whether a person has not been told lately, and notes that they are now.
func (u *unheard) first(now time.Time, user string) bool {
	u.mu.Lock()
	defer u.mu.Unlock()
	maps.DeleteFunc(u.at, func(_ string, told time.Time) bool { return now.Sub(told) > unheardAgain })
	if _, told := u.at[user]; told {
		return false
	}
	if u.at == nil {
		u.at = map[string]time.Time{}
	}
	u.at[user] = now
	return true
}
