package bot

import (
	"encoding/json"

	"countersign/bot/slackapi"
)

// Replicas coordinates the bot with the other processes that work on the same store. All these processes share Slack's
// limits. So the processes tell each other which calls they make, and when Slack asks them to wait.
type Replicas struct{ *core }

// others reports whether other processes work on the store.
func (b *Replicas) others() bool {
	if b.Share == nil {
		return false
	}
	n, _ := b.Share()
	return n > 1
}

func (b *Replicas) tell(t slackapi.Told) {
	if !b.others() {
		return
	}
	if raw, err := json.Marshal(t); err == nil {
		b.Tell(string(raw))
	}
}

// Hear handles a message from the bot of another replica.
func (b *Replicas) Hear(what string) {
	var t slackapi.Told
	if err := json.Unmarshal([]byte(what), &t); err != nil {
		b.Log.Debug("a message from another replica can't be read", "error", err)
		return
	}
	b.api.Hear(t)
}
