package bot

import (
	"strings"
	"testing"
)

func TestLanes(t *testing.T) {
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
