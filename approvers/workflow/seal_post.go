package workflow

import (
	"time"

	"countersign/store"
)

// The heads that a channel gets are one outbox message, of which one row and one rendering are stored however many are
// posted. Each is a message of its own, and so a round of the outbox message. It shows the head that is the newest when
// it is posted: after an outage only that one comes. Step is the number of the one that was posted last. No record is
// made of that: it would be sealed, and posted, for ever.
const headRef = "heads"

// postHead has the last head posted where the policy says so, once there is a new one and the time since the one before
// is over.
func (t *tx) postHead() error {
	to := t.policy.Audit
	if to.Channel == "" {
		return nil
	}
	last, err := t.LastHead()
	if err != nil {
		return ignoreNotFound(err)
	}
	at := toChannel + to.Channel
	posted, err := t.OutboxMessagesOf(headRef)
	if err != nil {
		return err
	}
	if len(posted) == 0 {
		return t.newOutboxMessage(store.OutboxMessage{Kind: store.OutboxHead, Ref: headRef, To: at})
	}
	s := posted[0]
	if s.To == at {
		due, err := t.headDue(s, last, to.Every)
		if err != nil || !due {
			return err
		}
	}
	return t.nextHead(s, at)
}

// headDue reports whether another head is to be posted. One that waits for that shows the newest by itself.
func (t *tx) headDue(s store.OutboxMessage, last store.Head, every time.Duration) (bool, error) {
	if s.State == store.OutboxWanted || s.Step == int(last.Number) {
		return false, nil
	}
	since := s.CreatedAt
	shown, err := t.Rendering(s.ID, s.Posts)
	if err == nil {
		since = shown.At
	}
	return since.After(t.now) || !t.now.Before(since.Add(every)), ignoreNotFound(err) // a clock that was set back stops nothing
}

// nextHead begins another message.
func (t *tx) nextHead(s store.OutboxMessage, to string) error {
	if _, err := t.EraseRenderings(s.ID, 0); err != nil {
		return err
	}
	s.To, s.Channel, s.LastError = to, "", ""
	s.CreatedAt, s.Process, s.After = t.now, t.w.owner, t.w.slack.time()
	s.Round++
	return t.repostLost(s)
}

// headAgain has a head that Slack refused posted now: the bot is in another channel than before.
func (t *tx) headAgain() error {
	posted, err := t.OutboxMessagesOf(headRef)
	if err != nil || len(posted) == 0 || posted[0].State != store.OutboxUnreachable {
		return err
	}
	return t.nextHead(posted[0], posted[0].To)
}

// viewHead reads the newest head.
func (m *ViewModel) viewHead(r store.Reader) error {
	last, err := r.LastHead()
	m.Head, m.Message.Step = &last, int(last.Number)
	return err
}
