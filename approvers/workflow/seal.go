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

// ErrSeal means that the sealer signs no new head: the store differs from the last signed head, or the key belongs to
// another installation.
var ErrSeal = errors.New("the history does not match the last signed head; run: countersign audit verify")

// sealBatch limits how many new records one head covers, so its transaction stays short.
const sealBatch = 1024

// sealed is the state from which the next head is made. Each transaction that writes a head also writes this state.
type sealed struct {
	Tree approvers.Tree `json:"tree"`
	Key  string         `json:"key"` // the public key that signed the last head
}

// Seal signs a head over the records since the last head, with the first key. If this key replaces an older key, the
// older key also signs. Seal returns the number of newly covered records, at most sealBatch. The caller calls Seal
// again until it returns 0.
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

// seal stores the head that follows the last one.
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

// sealed reads the state for the next head. If the state does not match the last head, it is rebuilt from the journal.
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

// made reports whether this state was written together with the given head.
func (s sealed) made(h approvers.Head, signed string) bool {
	root, err := s.Tree.Root()
	return err == nil && root == h.Root && s.Tree.Size == h.Size && approvers.SignedBy(signed, s.Key)
}

// resealed rebuilds the state for the next head from the journal and the stored heads.
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

// All heads in a channel share one outbox message, so the store has only one row and one rendering for them. Each
// posted head is a new Slack message, and therefore a new round of the outbox message. A post shows the newest head, so
// after an outage only one head is posted. Step is the number of the head that was posted last. The post of a head adds
// no audit record. Otherwise, sealing this record would lead to another post, and so on forever.
const headRef = "heads"

// postHead posts the newest head in the policy's channel, if the head is new and the policy's interval has passed.
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

// headDue reports whether a head must be posted. While a message with a head waits for delivery, the bot needs no other
// message, because the waiting message will show the newest head.
func (t sealsTx) headDue(s store.OutboxMessage, last store.Head, every time.Duration) (bool, error) {
	if s.State == store.OutboxWanted || s.Step == int(last.Number) {
		return false, nil
	}
	since := s.CreatedAt
	shown, err := t.Rendering(s.ID, s.Posts)
	if err == nil {
		since = shown.At
	}
	return since.After(t.now) || !t.now.Before(since.Add(every)), store.IgnoreNotFound(err) // since is later than now if the clock was set back, which must not stop the posts
}

// After the bot has joined a channel, headAgain posts a refused head again.
func (t sealsTx) headAgain() error {
	posted, err := t.OutboxMessagesOf(headRef)
	if err != nil || len(posted) == 0 || posted[0].State != store.OutboxUnreachable {
		return err
	}
	return t.reposts.postNext(posted[0], posted[0].To)
}

// Started records that a process begins to work on the store. facts identifies the program.
func (w *History) Started(ctx context.Context, facts map[string]string) error {
	return w.record(ctx, "start", func(t *tx) error {
		return t.audit(approvers.InstallationChain, approvers.AuditStarted, "", facts, nil)
	})
}
