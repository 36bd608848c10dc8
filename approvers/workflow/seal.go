package workflow

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"countersign/approvers"
	"countersign/store"
)

// ErrSeal means that Seal can't sign a new head. The store differs from the last signed head, or the key belongs to
// another installation.
var ErrSeal = errors.New("the history does not match the last signed head; run: countersign audit verify")

// sealBatch is the maximum number of new records that one head covers. The limit keeps the transaction short.
const sealBatch = 1024

// sealed is the state from which the next head is computed. Each transaction that writes a head also writes this state.
type sealed struct {
	Tree approvers.Tree `json:"tree"`
	Key  string         `json:"key"` // the public key that signed the last head
}

// Seal signs a new head. A head is a signed statement of all audit records up to a point (approvers.Head). The first
// key signs. If the first key replaces an older key, and keys also has the older key, the older key also signs. Seal
// returns how many records the new head adds, at most sealBatch. To seal all records, Seal must be called until it
// returns 0.
func (w *History) Seal(ctx context.Context, keys ...approvers.SealKey) (records int, err error) {
	err = w.record(ctx, "seal", func(t *tx) error {
		last, err := lastHead(t)
		if err != nil {
			return err
		}
		entries, err := t.Journal(last.Size, sealBatch)
		if records = len(entries); err != nil {
			return err
		}
		if records > 0 {
			if err := t.seals.seal(last, entries, keys); err != nil {
				return err
			}
		}
		return t.seals.postHead()
	})
	return records, err
}

func lastHead(r store.Reader) (store.Head, error) {
	last, err := r.LastHead()
	if errors.Is(err, store.ErrNotFound) {
		return last, nil
	}
	return last, err
}

// seal signs and stores the next head. The parameter last is the previous head.
func (t sealsTx) seal(last store.Head, entries []approvers.JournalEntry, keys []approvers.SealKey) error {
	s, now, err := t.sealed(last, keys[0].Origin())
	if err != nil {
		return err
	}
	for _, e := range entries {
		if e.Leaf != now.Tree.Size || e.Chain == "" {
			return fmt.Errorf("%w (record %d of the journal is missing or damaged)", ErrSeal, now.Tree.Size)
		}
		now.Tree.Add(approvers.LeafHash(e.Sum))
	}
	head := approvers.Head{Origin: keys[0].Origin(), Size: now.Tree.Size, Number: last.Number + 1, At: t.now}
	if head.Root, err = now.Tree.Root(); err != nil {
		return err
	}
	if last.Number > 0 {
		head.Before = approvers.SumOf([]byte(last.Note))
	}
	signers := keys[:1]
	if now.Key != keys[0].Public {
		head.Key, head.After = keys[0].Public, now.Key
		for _, k := range keys[1:] {
			if k.Public == now.Key {
				signers = []approvers.SealKey{keys[0], k}
			}
		}
		now.Key = keys[0].Public
	}
	signed, err := head.Sign(signers...)
	if err != nil {
		return fmt.Errorf("sign a head: %w", err)
	}
	if err := t.PutHead(store.Head{Number: head.Number, Size: head.Size, Note: signed}); err != nil {
		return err
	}
	if s.Value, err = json.Marshal(now); err != nil {
		return err
	}
	return t.PutSetting(s)
}

// t.sealed reads the state from which the next head is computed. If the state does not match the last head, sealed
// rebuilds the state from the journal.
func (t sealsTx) sealed(last store.Head, origin string) (s store.Setting, now sealed, err error) {
	s, err = t.Setting(store.SettingSeal)
	if errors.Is(err, store.ErrNotFound) {
		s, err = store.Setting{Key: store.SettingSeal, Value: []byte("{}")}, nil
	}
	if err != nil || last.Number == 0 {
		return s, now, err
	}
	head, err := approvers.ReadHead(last.Note)
	if err != nil {
		return s, now, fmt.Errorf("%w (head %d)", ErrSeal, last.Number)
	}
	if head.Origin != origin {
		return s, now, fmt.Errorf("%w (the key is that of %s, and the heads are of %s)", ErrSeal, origin, head.Origin)
	}
	if err := json.Unmarshal(s.Value, &now); err != nil || !now.made(head, last.Note) {
		t.w.Log.Warn("the state for the next head is damaged; it is rebuilt from the journal", "head", last.Number)
		if now, err = resealed(t, last.Size); err != nil {
			return s, now, err
		}
	}
	if !now.made(head, last.Note) {
		return s, now, fmt.Errorf("%w (head %d)", ErrSeal, last.Number)
	}
	return s, now, nil
}

// The method "made" reports whether the state belongs to the head h. Then the state has the tree of h, and the key that
// signed h.
func (s sealed) made(h approvers.Head, signed string) bool {
	root, err := s.Tree.Root()
	return err == nil && root == h.Root && s.Tree.Size == h.Size && approvers.SignedBy(signed, s.Key)
}

// resealed rebuilds the state from which the next head is computed. The data come from the journal and the stored
// heads.
func resealed(r store.Reader, size uint64) (now sealed, err error) {
	for now.Tree.Size < size {
		entries, err := r.Journal(now.Tree.Size, int(min(sealBatch, size-now.Tree.Size)))
		if err != nil {
			return now, err
		}
		if len(entries) == 0 {
			return now, fmt.Errorf("%w (the journal ends before record %d)", ErrSeal, now.Tree.Size)
		}
		for _, e := range entries {
			now.Tree.Add(approvers.LeafHash(e.Sum))
		}
	}
	for after := uint64(0); ; {
		heads, err := r.Heads(after, sealBatch)
		if err != nil || len(heads) == 0 {
			return now, err
		}
		for _, h := range heads {
			if read, err := approvers.ReadHead(h.Note); err == nil && read.Key != "" {
				now.Key = read.Key
			}
			after = h.Number
		}
	}
}

// headRef is the Ref of the outbox message for signed heads that the bot posts in a channel. All heads share this
// outbox message, so the store has only one row and one rendering for them. Each post of a head is a new Slack message
// and a new round of the outbox message. A post shows the newest head, so the bot posts only one head after an outage.
// Step is the number of the head that was posted last. The post of a head adds no audit record. A record would be
// sealed by a new head, whose post would add another record, and so on forever.
const headRef = "heads"

// postHead schedules a post of the newest head in the channel that the policy names. The head must be new, and the
// policy's interval since the last post must have passed. If the policy names a new channel, postHead schedules the
// post without these conditions.
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
	return t.reposts.postNext(s, at)
}

// headDue reports whether a head must be posted. While a post of a head waits for delivery, no other post is needed,
// because the waiting post will show the newest head.
func (t sealsTx) headDue(s store.OutboxMessage, last store.Head, every time.Duration) (bool, error) {
	if s.State == store.OutboxWanted || s.Step == int(last.Number) {
		return false, nil
	}
	since := s.CreatedAt
	shown, err := t.Rendering(s.ID, s.Posts)
	if err == nil {
		since = shown.At
	}
	return since.After(t.now) || !t.now.Before(since.Add(every)), store.IgnoreNotFound(err) // if the clock was set back, since can be after now; posts must go on in this case
}

// headAgain posts a head that Slack refused. headAgain is called after the bot has joined a channel.
func (t sealsTx) headAgain() error {
	posted, err := t.OutboxMessagesOf(headRef)
	if err != nil || len(posted) == 0 || posted[0].State != store.OutboxUnreachable {
		return err
	}
	return t.reposts.postNext(posted[0], posted[0].To)
}

// Started records that a process begins to work on the store. facts describes the program and its version.
func (w *History) Started(ctx context.Context, facts map[string]string) error {
	return w.record(ctx, "start", func(t *tx) error {
		return t.audit(approvers.InstallationChain, approvers.AuditStarted, "", facts, nil)
	})
}
