package bot

import (
	"fmt"
	"strings"
	"testing"

	"countersign/store"
)

// TestGarbageNames: a delivery with malformed names of people, channels or messages is acknowledged, set aside at once
// with a line in the log, and leaves nothing else.
func TestGarbageNames(t *testing.T) {
	h := newHarness(t)
	const mention = `{"event_id":"Ev%d","team_id":"T0001","event":{"type":"app_mention","user":%q,"channel":%q,"channel_type":"channel","ts":%q,"thread_ts":%q,"text":"<@U0999> hello"}}`
	const click = `{"type":"block_actions","team":{"id":"T0001"},"user":{"id":%q},"container":{"channel_id":%q,"message_ts":%q},"message":{"ts":%q},"trigger_id":"t%d","actions":[{"action_id":"approve","value":"x"}]}`
	const good = "1783536983.783769"
	for i, c := range []struct {
		field   string
		kind    store.InboxKind
		payload string
	}{
		{"thread_ts", store.InboxEvent, fmt.Sprintf(mention, 1, "U0100", "C0001", good, "../../etc")},
		{"thread_ts", store.InboxEvent, fmt.Sprintf(mention, 2, "U0100", "C0001", good, "1783536983.783769\n")},
		{"thread_ts", store.InboxEvent, fmt.Sprintf(mention, 3, "U0100", "C0001", good, strings.Repeat("9", 50_000))},
		{"ts", store.InboxEvent, fmt.Sprintf(mention, 4, "U0100", "C0001", "now", "")},
		{"channel", store.InboxEvent, fmt.Sprintf(mention, 5, "U0100", "C0001/x", good, "")},
		{"channel", store.InboxEvent, fmt.Sprintf(mention, 6, "U0100", "D0001 D0002", good, "")},
		{"user", store.InboxEvent, fmt.Sprintf(mention, 7, "U0100|U0200", "C0001", good, "")},
		{"deleted_ts", store.InboxEvent, `{"event_id":"Ev8","team_id":"T0001","event":{"type":"app_mention","user":"U0100","channel":"C0001","ts":"` + good + `","deleted_ts":"a/b"}}`},
		{"ts", store.InboxEvent, `{"event_id":"Ev9","team_id":"T0001","event":{"type":"message","subtype":"message_deleted","channel":"D0001","channel_type":"im","deleted_ts":"a/b","previous_message":{"type":"message","user":"U0100","ts":"a/b"}}}`},
		{"assistant_thread.thread_ts", store.InboxEvent, `{"event_id":"Ev10","team_id":"T0001","event":{"type":"assistant_thread_started","assistant_thread":{"user_id":"U0100","channel_id":"D0001","thread_ts":"x"}}}`},
		{"user", store.InboxInteraction, fmt.Sprintf(click, "U 1", "C0001", good, good, 1)},
		{"container.channel_id", store.InboxInteraction, fmt.Sprintf(click, "U0100", "#general", good, good, 2)},
		{"container.message_ts", store.InboxInteraction, fmt.Sprintf(click, "U0100", "C0001", "x", good, 3)},
		{"user_id", store.InboxCommand, `{"command":"/countersign","text":"pending","user_id":"<@U1>","channel_id":"C0001","team_id":"T0001"}`},
		{"channel_id", store.InboxCommand, `{"command":"/countersign","text":"pending","user_id":"U0100","channel_id":"` + strings.Repeat("C", 70) + `","team_id":"T0001"}`},
	} {
		if _, err := h.receive(c.kind, []byte(c.payload)); err != nil {
			t.Errorf("%d: it comes again: %v", i, err)
			continue
		}
		var row store.Inbox
		h.until(fmt.Sprintf("delivery %d is handled", i), func() bool {
			var err error
			row, err = h.bot.Views.Inbox(t.Context(), deliveryID(c.kind, c.payload))
			return err == nil && !row.HandledAt.IsZero()
		})
		if !strings.Contains(row.Note, "its "+c.field+` "`) || len(row.Note) > 300 || len(row.Payload) > 0 {
			t.Errorf("%d: the note is %q", i, row.Note)
		}
	}
	long := fmt.Sprintf(`{"event_id":%q,"team_id":"T0001","event":{"type":"app_mention","user":"U0100","channel":"C0001","ts":%q,"text":"hello"}}`, strings.Repeat("E", 60_000), good)
	if _, err := h.receive(store.InboxEvent, []byte(long)); err != nil {
		t.Errorf("an event with a name that is too long to be stored: %v", err)
	}
	err := h.store.View(t.Context(), func(r store.Reader) error {
		for _, thread := range []string{"../../etc", "now", "x", "1783536983.783769\n"} {
			if _, err := r.ConversationAt("T0001/C0001/" + thread); err == nil {
				t.Errorf("there is a conversation in the thread %q", thread)
			}
		}
		return nil
	})
	if err != nil {
		t.Error(err)
	}
}
