package bot

import (
	"strings"
	"testing"

	"countersign/bot/render"
	"countersign/store"
)

const mention = `{"team_id":"T1","event_id":"Ev1","event":{"type":"app_mention","user":"U1","text":"<@UBOT> hi","ts":"5.1","channel":"C1","channel_type":"channel"}}`

func TestForUs(t *testing.T) {
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

// A repeated delivery of a click has the same id; another click has another id.
func TestInteractionIDs(t *testing.T) {
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

// FuzzReadPayloads passes arbitrary payloads to the edge, which accepts or rejects them without panicking.
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
		i.filled(render.FieldReason)
		if slim, err := i.slim([]byte(raw + strings.Repeat(" ", 9<<10))); err == nil {
			again, err := readInteraction(slim)
			if err != nil || again.id(slim) != i.id([]byte(raw)) && i.TriggerID != "" {
				t.Errorf("what is kept of %s is another click: %s (%v)", raw, slim, err)
			}
		}
	})
}
