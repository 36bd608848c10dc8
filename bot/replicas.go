package bot

import (
	"encoding/json"

	"countersign/bot/slackapi"
)

// Replicas coordinates the bot with the other processes that work on the same store. All these processes share Slack's
// limits. So the processes tell each other which calls they make, and when Slack asks them to wait. They also tell each
// other which of Slack's answers about people are out of date.
type Replicas struct{ *core }

// replicaMessage is a message between the bots of two replicas. Either Told or Event is set.
type replicaMessage struct {
	slackapi.Told
	Event string `json:"event,omitempty"` // the type of an event after which cached answers of Slack are out of date
	User  string `json:"user,omitempty"`  // the person of the event, if any
}

// others reports whether other processes work on the store.
func (b *Replicas) others() bool {
	if b.Share == nil {
		return false
	}
	n, _ := b.Share()
	return n > 1
}

func (b *Replicas) tell(t slackapi.Told) { b.send(replicaMessage{Told: t}) }

func (b *Replicas) send(m replicaMessage) {
	if !b.others() {
		return
	}
	if raw, err := json.Marshal(m); err == nil {
		b.Tell(string(raw))
	}
}

// invalidate drops the cached answers that an event makes invalid, in all replicas. One replica may receive the event,
// another replica may handle it, and a third replica may check who can decide.
func (b *Replicas) invalidate(e event) {
	b.users.Invalidate(e.Type, e.userID())
	b.send(replicaMessage{Event: e.Type, User: e.userID()})
}

// Hear handles a message from the bot of another replica.
func (b *Replicas) Hear(what string) {
	var m replicaMessage
	if err := json.Unmarshal([]byte(what), &m); err != nil {
		b.Log.Debug("a message from another replica can't be read", "error", err)
		return
	}
	if m.Event != "" {
		b.users.Invalidate(m.Event, m.User)
		b.users.ForgetLost(m.User)
		return
	}
	b.api.Hear(m.Told)
}
