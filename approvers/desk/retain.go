package desk

import (
	"context"
	"errors"
	"slices"
	"time"

	"countersign/approvers"
	"countersign/store"
)

// Retained says what was erased because of its age.
type Retained struct {
	Conversations int
	Chains        int // of the history
	Records       int // in those chains
}

// How much is looked at together.
const (
	retainPage  = 100 // conversations, or chains
	retainBatch = 500 // records that one transaction deletes
)

// Retain erases what is older than the policy keeps it: conversations with everything that was written in them, the audit's texts included, and later
// the records of the audit. What still waits for somebody is kept. It may be stopped at any moment, and goes on the next time.
func (d *Desk) Retain(ctx context.Context) (done Retained, err error) {
	keep := d.Policy().Retention
	if keep.Conversations > 0 {
		if done.Conversations, err = d.retainConversations(ctx, d.now().Add(-keep.Conversations)); err != nil {
			return done, err
		}
	}
	if keep.Records > 0 {
		err = d.retainChains(ctx, d.now().Add(-keep.Records), &done)
	}
	return done, err
}

func (d *Desk) retainConversations(ctx context.Context, before time.Time) (erased int, err error) {
	kept := map[string]bool{} // they stay, and come first in each list
	for {
		var page []store.Conversation
		err := d.Store.View(ctx, func(r store.Reader) (err error) {
			page, err = r.ConversationsBefore(before, len(kept)+retainPage)
			return err
		})
		if err != nil {
			return erased, err
		}
		page = slices.DeleteFunc(page, func(c store.Conversation) bool { return kept[c.ID] })
		if len(page) == 0 {
			return erased, nil
		}
		for _, c := range page {
			gone, err := d.retainConversation(ctx, c.ID, before)
			if err != nil {
				return erased, err
			}
			if gone {
				erased++
			} else {
				kept[c.ID] = true
			}
		}
	}
}

// retainConversation erases a conversation, a part in each transaction: first the texts beside its history, then what belongs to it. It reports false where
// something of it still waits.
func (d *Desk) retainConversation(ctx context.Context, id string, before time.Time) (gone bool, err error) {
	for texts := true; !gone; {
		over := false
		err := d.update(ctx, "retain", func(t *tx) (err error) {
			if over, err = t.isOver(id, before); err != nil || !over {
				return err
			}
			if texts {
				return t.eraseTexts(id)
			}
			gone, err = t.EraseConversation(id, retainBatch)
			return err
		})
		if err != nil || !over {
			return false, err
		}
		texts = false
	}
	return true, nil
}

// isOver reports whether a conversation is as old as that, and nothing of it waits for somebody.
func (t *tx) isOver(id string, before time.Time) (bool, error) {
	c, err := t.Conversation(id)
	if err != nil || c.Turn != "" || !c.LastAt.Before(before) {
		return false, ignoreNotFound(err)
	}
	grants, err := t.OpenGrants("")
	if err != nil || slices.ContainsFunc(grants, func(g approvers.Grant) bool { return g.Conversation == id }) {
		return false, err
	}
	calls, err := t.callsIn(id)
	if err != nil {
		return false, err
	}
	for _, call := range calls {
		if call.Execution == "" {
			continue
		}
		e, err := t.Execution(call.Execution)
		if err != nil && !errors.Is(err, store.ErrNotFound) {
			return false, err
		}
		if e.State == approvers.ExecutionExecuting || e.State == approvers.ExecutionUnknown {
			return false, nil
		}
	}
	return true, nil
}

// callsIn lists the calls of all turns of a conversation.
func (t *tx) callsIn(id string) (all []store.Call, err error) {
	messages, err := t.Messages(id, 0)
	if err != nil {
		return nil, err
	}
	seen := map[string]bool{"": true}
	for _, m := range messages {
		if seen[m.Turn] {
			continue
		}
		seen[m.Turn] = true
		calls, err := t.Calls(m.Turn)
		if err != nil {
			return nil, err
		}
		all = append(all, calls...)
	}
	return all, nil
}

// eraseTexts erases what lies beside the history of a conversation's calls. Each chain says so itself; its records and their hashes stay.
func (t *tx) eraseTexts(id string) error {
	calls, err := t.callsIn(id)
	if err != nil {
		return err
	}
	for _, call := range calls {
		for _, chain := range []string{call.Request, call.Execution, call.ID} {
			if chain == "" {
				continue
			}
			seqs, err := t.ErasePayloads(chain)
			if err != nil {
				return err
			}
			if len(seqs) == 0 {
				continue
			}
			facts := approvers.Erasure{Seqs: seqs}.Facts()
			facts["why"] = "age"
			if err := t.audit(chain, approvers.AuditErased, "", facts, nil); err != nil {
				return err
			}
		}
	}
	return nil
}

// retainChains removes the chains whose last record is as old as that, and counts them.
func (d *Desk) retainChains(ctx context.Context, before time.Time, done *Retained) error {
	for after, more := "", true; more; {
		var old []string
		err := d.Store.View(ctx, func(r store.Reader) error {
			page, err := r.AuditChains(after, retainPage)
			if err != nil {
				return err
			}
			old, more = nil, len(page) == retainPage
			for _, chain := range page {
				head, err := r.AuditHead(chain)
				if err != nil {
					return err
				}
				if after = chain; chain != approvers.InstallationChain && head.At.Before(before) {
					old = append(old, chain)
				}
			}
			return nil
		})
		if err != nil {
			return err
		}
		for _, chain := range old {
			records, err := d.prune(ctx, chain, before)
			if err != nil {
				return err
			}
			if records > 0 {
				done.Chains++
				done.Records += records
			}
		}
	}
	return nil
}

// prune removes a chain that nothing belongs to any more, and records that in the installation's chain. It says how many records that were; 0: it stays.
func (d *Desk) prune(ctx context.Context, chain string, before time.Time) (records int, err error) {
	err = d.update(ctx, "prune", func(t *tx) error {
		records = 0
		head, err := t.AuditHead(chain)
		if err != nil || !head.At.Before(before) {
			return ignoreNotFound(err)
		}
		if r, err := t.Request(chain); err == nil && r.State.Open() {
			return nil
		} else if ignoreNotFound(err) != nil {
			return err
		}
		if records, err = t.PruneChain(chain); err != nil {
			return err
		}
		facts := approvers.Pruning{Chain: chain, Records: uint64(records), Head: head.Hash}.Facts()
		return t.audit(approvers.InstallationChain, approvers.AuditPruned, "", facts, nil)
	})
	return records, err
}
