package bot

import (
	"fmt"
	"strings"
	"testing"

	"countersign/bot/render/control"
	"countersign/store"
)

const mention = `{"team_id":"T1","event_id":"Ev1","event":{"type":"app_mention","user":"U1","text":"<@UBOT> hi","ts":"5.1","channel":"C1","channel_type":"channel"}}`

func TestForUs(t *testing.T) {
	t.Parallel()
	for payload, want := range map[string]bool{
		mention: true,
		strings.Replace(mention, "app_mention", "message", 1):                                  true,
		strings.Replace(mention, "app_mention", "message\",\"subtype\":\"thread_broadcast", 1): true,
		strings.Replace(mention, "app_mention", "message\",\"subtype\":\"file_share", 1):       true,
		strings.Replace(mention, "app_mention", "message\",\"subtype\":\"message_changed", 1):  false,
		strings.Replace(mention, "app_mention", "message\",\"subtype\":\"channel_join", 1):     false,
		strings.Replace(mention, "app_mention", "message\",\"subtype\":\"something_new", 1):    false,
		strings.Replace(mention, `"user":"U1"`, `"user":"U1","bot_id":"B1"`, 1):                false,
		strings.Replace(mention, "app_mention", "reaction_added", 1):                           false,
		strings.Replace(mention, `"user":"U1",`, ``, 1):                                        false,
	} {
		e, err := readEnvelope([]byte(payload))
		if err != nil || e.Event.forUs() != want {
			t.Errorf("%s: %v, want %v (%v)", payload, !want, want, err)
		}
	}
}

// A repeated delivery of a click has the same id. Another click has another id.
func TestInteractionIDs(t *testing.T) {
	t.Parallel()
	click := `{"type":"block_actions","trigger_id":"1.2.x","user":{"id":"U1"},"actions":[{"action_id":"approve","action_ts":"7.7","value":"v"}]}`
	id := func(raw string) string {
		i, err := readInteraction([]byte(raw))
		if err != nil {
			t.Fatal(err)
		}
		return i.id([]byte(raw))
	}
	if id(click) != id(click) || id(click) != id(strings.Replace(click, `"value":"v"`, `"value":"v","text":{"x":[1,2]}`, 1)) {
		t.Error("the same click has two ids")
	}
	for _, other := range []string{
		strings.Replace(click, "1.2.x", "1.3.x", 1), strings.Replace(click, "U1", "U2", 1), strings.Replace(click, "7.7", "7.8", 1), strings.Replace(click, "approve", "reject", 1),
		strings.Replace(click, `"trigger_id":"1.2.x",`, "", 1),
	} {
		if id(other) == id(click) {
			t.Errorf("%s has the id of another click", other)
		}
	}
}

// A delivery that can't be read is set aside once, and not retried.
func TestPoison(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	n := 0
	for kind, payloads := range map[store.InboxKind][]string{
		store.InboxEvent:       {``, `{`, `[]`, `{"event":7}`, `{"event":{}}`},
		store.InboxInteraction: {``, `null`, `{"type":"block_actions"}`, `{"type":"block_actions","user":{"id":"U0002"},"actions":[{"action_id":"approve","value":"x"}]}`, `{"type":"view_submission","user":{"id":"U0002"},"view":{"callback_id":"reject","private_metadata":"junk"}}`},
		store.InboxCommand:     {`/x`, `null`},
	} {
		for _, p := range payloads {
			if _, err := h.receive(kind, []byte(p)); err != nil {
				t.Errorf("%s %q: %v", kind, p, err)
			}
			n++
		}
	}
	h.until("all were set aside, or refused", func() bool {
		log := h.log.String()
		return len(unhandled(t, h)) == 0 && strings.Count(log, "a delivery was set aside")+strings.Count(log, "a click was refused") >= n-1
	})
}

// FuzzReadPayloads passes arbitrary payloads to the functions that read deliveries. These functions accept or reject a
// payload, and never panic.
func FuzzReadPayloads(f *testing.F) {
	f.Add(mention)
	f.Add(`{"type":"view_submission","user":{"id":"U"},"view":{"state":{"values":{"a":{"b":{"value":null,"selected_option":null}}}}}}`)
	f.Add(`{"event":{"type":"message","user":{"id":[]},"channel":{}}}`)
	f.Fuzz(func(t *testing.T, raw string) {
		if e, err := readEnvelope([]byte(raw)); err == nil {
			e.lane()
			e.Event.forUs()
		}
		i, err := readInteraction([]byte(raw))
		if err != nil {
			return
		}
		formOf(i)
		i.message()
		i.filled(control.FieldReason)
		if slim, err := i.slim([]byte(raw + strings.Repeat(" ", 9<<10))); err == nil {
			again, err := readInteraction(slim)
			if err != nil || again.id(slim) != i.id([]byte(raw)) && i.TriggerID != "" {
				t.Errorf("the stored click for %s is another one: %s (%v)", raw, slim, err)
			}
		}
	})
}

// TestGarbageNames checks a delivery with malformed ids of people, channels or messages. The bot acknowledges such a
// delivery, and sets it aside with a log line. The delivery has no other effect.
func TestGarbageNames(t *testing.T) {
	t.Parallel()
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
			t.Errorf("%d: it is not acknowledged: %v", i, err)
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

func TestLanes(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ payload, want string }{
		"a mention begins a thread":         {mention, "thread:C1/5.1"},
		"a reply belongs to its thread":     {strings.Replace(mention, `"ts"`, `"thread_ts":"5.1","ts"`, 1), "thread:C1/5.1"},
		"a direct message is of one lane":   {strings.NewReplacer("channel_type\":\"channel", "channel_type\":\"im", "C1", "D1").Replace(mention), "thread:D1/"},
		"a direct message, type left out":   {strings.NewReplacer(`,"channel_type":"channel"`, "", "C1", "D1").Replace(mention), "thread:D1/"},
		"a thread in direct messages":       {strings.NewReplacer("channel_type\":\"channel", "channel_type\":\"im", `"ts"`, `"thread_ts":"4.4","ts"`).Replace(mention), "thread:C1/4.4"},
		"a user in an object is understood": {strings.Replace(mention, `"U1"`, `{"id":"U1"}`, 1), "thread:C1/5.1"},
	} {
		e, err := readEnvelope([]byte(c.payload))
		if err != nil || e.lane() != c.want || e.Event.userID() != "U1" {
			t.Errorf("%s: %q, %v", name, e.lane(), err)
		}
	}
}
