package bot

import (
	"encoding/json"

	"countersign/bot/slackapi"
)

// Replicas share Slack's limits, so they tell each other which calls they make, and when Slack asks to wait.

func (b *Bot) tellReplicas(t slackapi.Told) {
	if raw, err := json.Marshal(t); err == nil {
		b.Tell(string(raw))
	}
}

// Hear takes what the bot of another replica told.
func (b *Bot) Hear(what string) {
	var t slackapi.Told
	if err := json.Unmarshal([]byte(what), &t); err != nil {
		b.Log.Debug("another replica told something that this one does not understand", "error", err)
		return
	}
	b.api.Hear(t)
}

// hasReplicas reports whether other processes work on the same store.
func (b *Bot) hasReplicas() bool {
	if b.Share == nil {
		return false
	}
	n, _ := b.Share()
	return n > 1
}
