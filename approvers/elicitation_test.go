package approvers

import (
	"encoding/json"
	"testing"
	"time"

	"pgregory.net/rapid"
)

func TestElicitationIsForOnePerson(t *testing.T) {
	now := time.Date(2026, 3, 2, 9, 0, 0, 0, time.UTC)
	sam := Identity{ID: Who("T", "U1"), Name: "Sam"}
	open := Elicitation{ID: "ask_1", State: ElicitationOpen, Asked: sam.ID, CreatedAt: now, ExpiresAt: now.Add(time.Minute)}
	for name, c := range map[string]struct {
		q        Elicitation
		who      Identity
		received time.Time
		want     Code
	}{
		"the person who was asked":  {open, sam, now, ""},
		"at the deadline":           {open, sam, open.ExpiresAt, ""},
		"after it":                  {open, sam, open.ExpiresAt.Add(1), DeniedLateAnswer},
		"somebody else":             {open, Identity{ID: Who("T", "U2")}, now, DeniedNotAsked},
		"nobody":                    {open, Identity{}, now, DeniedUnidentified},
		"a deactivated account":     {open, Identity{ID: sam.ID, Deleted: true}, now, DeniedDeactivated},
		"a guest":                   {open, Identity{ID: sam.ID, Guest: true}, now, DeniedGuest},
		"a stranger":                {open, Identity{ID: sam.ID, Foreign: true}, now, DeniedForeign},
		"a bot":                     {open, Identity{ID: sam.ID, Bot: true}, now, DeniedBot},
		"one that is answered":      {Elicitation{State: ElicitationAccepted, Asked: sam.ID, ExpiresAt: open.ExpiresAt}, sam, now, DeniedAnswered},
		"one that is cancelled":     {open.Cancel("the run ended", now), sam, now, DeniedAnswered},
		"one that expired":          {Elicitation{State: ElicitationExpired, Asked: sam.ID, ExpiresAt: open.ExpiresAt}, sam, now, DeniedLateAnswer},
		"another's, after the end":  {Elicitation{State: ElicitationDeclined, Asked: sam.ID}, Identity{ID: Who("T", "U2")}, now, DeniedNotAsked},
		"in the name of the person": {open, Identity{ID: Who("T2", "U1")}, now, DeniedNotAsked},
	} {
		for what, act := range map[string]func() (Elicitation, *Denied){
			"accept":  func() (Elicitation, *Denied) { return c.q.Accept(c.who, json.RawMessage(`{}`), c.received, now) },
			"decline": func() (Elicitation, *Denied) { return c.q.Decline(c.who, c.received, now) },
		} {
			after, denied := act()
			if got := (denied == nil); got != (c.want == "") || denied != nil && denied.Code != c.want {
				t.Errorf("%s, %s: %v, want %q", name, what, denied, c.want)
			}
			if denied != nil && after.State != c.q.State {
				t.Errorf("%s, %s: denied, and it is %s", name, what, after.State)
			}
		}
	}
}

// For any sequence of actions, an elicitation ends at most once, and its end state never changes.
func TestElicitationHasOneEnd(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		now := time.Date(2026, 3, 2, 9, 0, 0, 0, time.UTC)
		sam := Identity{ID: Who("T", "U1"), Name: "Sam"}
		q := Elicitation{State: ElicitationOpen, Asked: sam.ID, CreatedAt: now, ExpiresAt: now.Add(time.Minute)}
		ends := 0
		for range rapid.IntRange(1, 12).Draw(t, "actions") {
			now = now.Add(time.Duration(rapid.IntRange(0, 40).Draw(t, "seconds")) * time.Second)
			before := q
			received := now.Add(-time.Duration(rapid.IntRange(0, 60).Draw(t, "late")) * time.Second)
			switch rapid.IntRange(0, 3).Draw(t, "action") {
			case 0:
				q, _ = q.Accept(sam, json.RawMessage(`{"a":1}`), received, now)
			case 1:
				q, _ = q.Decline(sam, received, now)
			case 2:
				q = q.Cancel("the run ended", now)
			case 3:
				q, _ = q.Expire(now)
			}
			if q.State != before.State {
				ends++
			}
			if before.State != ElicitationOpen && (q.State != before.State || string(q.Values) != string(before.Values) || q.Why != before.Why || !q.ClosedAt.Equal(before.ClosedAt)) {
				t.Fatalf("%+v became %+v", before, q)
			}
			if q.State != ElicitationAccepted && q.Values != nil || q.State == ElicitationExpired && q.ClosedAt.Before(q.ExpiresAt) {
				t.Fatalf("it is %+v", q)
			}
		}
		if ends > 1 {
			t.Fatalf("it ended %d times", ends)
		}
	})
}
