package workspaceclient

import (
	"testing"
	"time"
)

func TestEditAndDelete(t *testing.T) {
	o := openOffice(t, nil)
	sam := o.visitor("sam")
	ts, err := sam.Say(t.Context(), "#support", "", "one")
	if err != nil {
		t.Fatal(err)
	}
	o.next()
	if err := sam.Edit(t.Context(), "#support", ts, "two"); err != nil {
		t.Fatal(err)
	}
	if e := o.next().Payload["event"].(object); e["subtype"] != "message_changed" || e["message"].(object)["text"] != "two" {
		t.Errorf("the app received %v", e)
	}
	if err := sam.Delete(t.Context(), "#support", ts); err != nil {
		t.Fatal(err)
	}
	if e := o.next().Payload["event"].(object); e["subtype"] != "message_deleted" || e["deleted_ts"] != ts {
		t.Errorf("the app received %v", e)
	}
	if err := sam.Edit(t.Context(), "#support", ts, "three"); Code(err) != "message_not_found" {
		t.Errorf("editing a deleted message: %v", err)
	}
}

func TestSnooze(t *testing.T) {
	o := openOffice(t, nil)
	kenji := o.visitor("kenji")
	until := time.Now().Add(time.Hour).Truncate(time.Second)
	for _, at := range []time.Time{until, {}} {
		if err := kenji.Snooze(t.Context(), at); err != nil {
			t.Fatal(err)
		}
		e := o.next().Payload["event"].(object)
		status := e["dnd_status"].(object)
		if e["type"] != "dnd_updated_user" || e["user"] != "U0004" || status["dnd_enabled"] != !at.IsZero() {
			t.Errorf("until %v the app received %v", at, e)
		}
		if !at.IsZero() && status["next_dnd_end_ts"] != float64(at.Unix()) {
			t.Errorf("the end of the pause: %v, want %d", status["next_dnd_end_ts"], at.Unix())
		}
	}
}
