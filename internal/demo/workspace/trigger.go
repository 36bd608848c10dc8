package workspace

import (
	"fmt"
	"regexp"
	"time"

	"countersign/internal/demo/workspace/wire"
)

// trigger is what a trigger_id stands for: one person's act, which the app may answer
// with one modal within three seconds.
type trigger struct {
	user    string
	viewID  string // the view in which it happened; "" elsewhere
	expires time.Time
	used    bool
}

var triggerForm = regexp.MustCompile(`^[0-9]+\.[0-9]+\.[0-9a-f]+$`)

// newTrigger makes a trigger for a person's act.
func (s *Server) newTrigger(user, viewID string) string {
	now := s.cfg.machine()
	s.lastTS++
	id := fmt.Sprintf("%d.%d.%s", s.lastTS, now.UnixMilli(), wire.NewSecret())
	t := &trigger{user: user, viewID: viewID, expires: now.Add(s.cfg.TriggerTTL)}
	s.triggers.put(id, t, t.expires, now)
	return id
}

// findTrigger looks a trigger up without using it.
func (s *Server) findTrigger(c *call) (*trigger, *apiError) {
	id := c.text("trigger_id")
	if !triggerForm.MatchString(id) {
		return nil, refuse("invalid_arguments", "invalid `trigger_id` [json-pointer:/trigger_id]")
	}
	t := s.triggers.byName[id]
	switch {
	case t == nil:
		return nil, refuse("invalid_trigger_id")
	case t.used:
		return nil, refuse("exchanged_trigger_id")
	case s.cfg.machine().After(t.expires):
		return nil, refuse("expired_trigger_id")
	}
	return t, nil
}
