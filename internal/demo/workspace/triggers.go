package workspace

import (
	"fmt"
	"regexp"
	"time"

	"countersign/internal/demo/workspace/wire"
)

// trigger is one action of a person. The app may answer a trigger with one modal within three seconds.
type trigger struct {
	user    string
	viewID  string // the view in which the person acted; "" outside of views
	expires time.Time
	used    bool
}

var triggerForm = regexp.MustCompile(`^[0-9]+\.[0-9]+\.[0-9a-f]+$`)

// triggers holds the triggers of people's actions.
type triggers struct {
	*core
	live *shortLived[*trigger]
}

// create stores a trigger and returns its trigger_id.
func (ts *triggers) create(user, viewID string) string {
	now := ts.cfg.machine()
	ts.lastTS++
	id := fmt.Sprintf("%d.%d.%s", ts.lastTS, now.UnixMilli(), wire.NewSecret())
	t := &trigger{user: user, viewID: viewID, expires: now.Add(ts.cfg.TriggerTTL)}
	ts.live.put(id, t, t.expires, now)
	return id
}

// find returns a valid trigger, without using up the trigger.
func (ts *triggers) find(c *call) (*trigger, *apiError) {
	id := c.text("trigger_id")
	if !triggerForm.MatchString(id) {
		return nil, refuse("invalid_arguments", "invalid `trigger_id` [json-pointer:/trigger_id]")
	}
	t := ts.live.byName[id]
	switch {
	case t == nil:
		return nil, refuse("invalid_trigger_id")
	case t.used:
		return nil, refuse("exchanged_trigger_id")
	case ts.cfg.machine().After(t.expires):
		return nil, refuse("expired_trigger_id")
	}
	return t, nil
}

// shortLived stores values under secret names. shortLived keeps a value for some time after its expiry, so that the
// caller can distinguish an expired name from an unknown name.
type shortLived[T any] struct {
	byName map[string]T
	order  []ending // oldest first, because all values live equally long
}

type ending struct {
	name string
	at   time.Time
}

const remembered = 10 * time.Minute

func newShortLived[T any]() *shortLived[T] { return &shortLived[T]{byName: map[string]T{}} }

// put adds a value that expires at the given time, and removes values that expired long ago.
func (s *shortLived[T]) put(name string, thing T, end, now time.Time) {
	gone := 0
	for gone < len(s.order) && now.Sub(s.order[gone].at) > remembered {
		delete(s.byName, s.order[gone].name)
		gone++
	}
	s.order = append(s.order[gone:], ending{name, end})
	s.byName[name] = thing
}
