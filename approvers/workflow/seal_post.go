package workflow

import (
	"time"

	"countersign/store"
)

// The signed heads in a channel are one outbox message, so that one row and one rendering are stored however many are
// posted. Each head is a new Slack message, and so a new round of the outbox message. It shows the newest head at the
// time it is posted, so after an outage only one is posted. Step is the number of the head that was posted last.
// Posting a head leaves no audit record: that would be sealed and posted, and so on for ever.
const headRef = "heads"

// postHead posts the newest head in the policy's channel, if it is new and the policy's interval has passed.
func (t sealsTx) postHead() error {
	to := t.policy.Audit
	if to.Channel == "" {
		return nil
	}
	last, err := t.LastHead()
	if err != nil {
		return store.IgnoreNotFound(err)
	}
	at := store.ToChannel + to.Channel
	posted, err := t.OutboxMessagesOf(headRef)
	if err != nil {
		return err
	}
	if len(posted) == 0 {
		return t.outbox.add(store.OutboxMessage{Kind: store.OutboxHead, Ref: headRef, To: at})
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

// headDue reports whether a head must be posted. A head that waits for delivery needs no other, because it will show
// the newest.
func (t sealsTx) headDue(s store.OutboxMessage, last store.Head, every time.Duration) (bool, error) {
	if s.State == store.OutboxWanted || s.Step == int(last.Number) {
		return false, nil
	}
	since := s.CreatedAt
	shown, err := t.Rendering(s.ID, s.Posts)
	if err == nil {
		since = shown.At
	}
	return since.After(t.now) || !t.now.Before(since.Add(every)), store.IgnoreNotFound(err) // the first condition: a clock that was set back must not stop the posts
}

// nextHead starts a new message.
func (t sealsTx) nextHead(s store.OutboxMessage, to string) error {
	if _, err := t.EraseRenderings(s.ID, 0); err != nil {
		return err
	}
	s.To, s.Channel, s.LastError = to, "", ""
	s.CreatedAt, s.Process, s.After = t.now, t.w.owner, t.w.slack.time()
	s.Round++
	return t.reposts.repostLost(s)
}

// headAgain posts a head that Slack refused, because the bot has joined a channel since.
func (t sealsTx) headAgain() error {
	posted, err := t.OutboxMessagesOf(headRef)
	if err != nil || len(posted) == 0 || posted[0].State != store.OutboxUnreachable {
		return err
	}
	return t.nextHead(posted[0], posted[0].To)
}
