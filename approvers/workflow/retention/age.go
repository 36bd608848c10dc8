package retention

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"countersign/approvers"
	"countersign/approvers/workflow"
	"countersign/approvers/workflow/settings"
	"countersign/store"
)

// Removed counts the records that Enforce removed.
type Removed struct {
	Conversations int
	Grants        int
	Absences      int
	Homes         int // times at which people opened their Home tabs
	SetAside      int // damaged records that were moved out of the way
	Chains        int // audit chains
	Records       int // records in those chains
}

// The sizes of batches.
const (
	pageSize  = 100 // conversations or chains in one read
	batchSize = 100 // records that one transaction deletes, while other commits wait
	textBatch = 75  // audit chains whose texts one transaction erases
)

// Round is a round of retention in a running bot: Enforce, with a guard against a wrong clock. From one round to the
// next, the time for which data counts as old moves by at most longestStep. So a clock that jumps ahead for some minutes
// does not erase years of data. After a longer stop of the bot, retention needs several rounds to catch up. While the
// policy has no retention, the time follows the clock. So retention need not catch up when it is switched on again.
func Round(ctx context.Context, wf *workflow.Workflow) (done Removed, err error) {
	now, err := advance(ctx, wf)
	if err != nil {
		return done, err
	}
	return enforce(ctx, wf, now)
}

const longestStep = 24 * time.Hour

// advance returns the time of a round, and stores it for the next round.
func advance(ctx context.Context, wf *workflow.Workflow) (now time.Time, err error) {
	keep := wf.Policy().Retention
	on := keep.Conversations > 0 || keep.Records > 0
	var clock time.Time
	err = wf.Update(ctx, "retain", func(t workflow.Tx) error {
		last, s, err := settings.ReadRetention(t)
		if err != nil {
			return err
		}
		clock, now = t.Now(), t.Now()
		if most := last.At.Add(longestStep); on && !last.At.IsZero() && now.After(most) {
			now = most
		}
		if s.Value, err = json.Marshal(settings.Retention{At: now}); err != nil {
			return err
		}
		return t.PutSetting(s)
	})
	if err == nil && now.Before(clock) {
		wf.Log.WarnContext(ctx, "the clock is more than a day ahead of the last round of retention: the bot was stopped, or the clock is wrong. Retention moves on by one day",
			"clock", clock, "retention", now)
	}
	return now, err
}

// Enforce removes data that is older than the policy's two retention times. The time Conversations is for conversations
// with all their texts, including the payloads of their audit records. This time is also for grants, absences, the
// times at which people opened their Home tabs, and damaged records that were moved out of the way. The time Records is
// at least as long, and is for the audit records themselves. Enforce keeps a conversation with unfinished work, and
// keeps an audit chain as long as its subject is stored. Enforce also keeps the data to which a damaged record belongs,
// and then returns store.ErrDamaged. If Enforce is stopped, the next call continues.
func Enforce(ctx context.Context, wf *workflow.Workflow) (done Removed, err error) {
	return enforce(ctx, wf, wf.Now())
}

func enforce(ctx context.Context, wf *workflow.Workflow, now time.Time) (done Removed, err error) {
	keep := wf.Policy().Retention
	if keep.Conversations > 0 {
		before := now.Add(-keep.Conversations)
		done.Conversations, err = eraseConversations(ctx, wf, before)
		if done.Conversations > 0 { // Home tabs show calls of old conversations, too
			err = errors.Join(err, wf.Update(ctx, "retain homes", func(t workflow.Tx) error {
				_, err := t.EraseHomes()
				return err
			}))
		}
		for _, erase := range []func(context.Context, *workflow.Workflow, time.Time, *Removed) error{eraseGrants, eraseAbsences, eraseHomes, eraseSetAside} {
			if err != nil && !store.OnlyDamaged(err) {
				return done, err
			}
			err = errors.Join(err, erase(ctx, wf, before, &done))
		}
		if err != nil && !store.OnlyDamaged(err) {
			return done, err
		}
	}
	if keep.Records > 0 {
		chains := pruneChains(ctx, wf, now, now.Add(-keep.Records), &done)
		if chains != nil && !store.OnlyDamaged(chains) {
			return done, chains
		}
		err = errors.Join(err, chains)
	}
	return done, err
}

// damagedOnes counts the data of one kind, such as conversations, that Enforce keeps because of damaged records.
type damagedOnes struct {
	n     int
	first error
}

func (d *damagedOnes) add(err error) {
	if d.n++; d.first == nil {
		d.first = err
	}
}

func (d *damagedOnes) err(what string) error {
	if d.n == 0 {
		return nil
	}
	return fmt.Errorf("%s with damaged records stay: %d; the first: %w", what, d.n, d.first)
}

func eraseConversations(ctx context.Context, wf *workflow.Workflow, before time.Time) (erased int, err error) {
	var damaged damagedOnes
	kept := map[string]bool{} // conversations that are kept, and therefore come first in each page
	for {
		var page []store.Conversation
		err := wf.Store.View(ctx, func(r store.Reader) (err error) {
			page, err = r.ConversationsBefore(before, len(kept)+pageSize)
			return err
		})
		if err != nil {
			return erased, err
		}
		page = slices.DeleteFunc(page, func(c store.Conversation) bool { return kept[c.ID] })
		if len(page) == 0 {
			return erased, damaged.err("conversations")
		}
		for _, c := range page {
			gone, err := eraseConversation(ctx, wf, c.ID, before)
			if err != nil && !store.OnlyDamaged(err) {
				return erased, err
			}
			if err != nil {
				damaged.add(err)
				gone = false
			}
			if gone {
				erased++
			} else {
				kept[c.ID] = true
			}
		}
	}
}

// eraseConversation erases a conversation: first the texts of its audit records, then the other records of the
// conversation. Several short transactions do the work. If the conversation has unfinished work, eraseConversation
// returns false. The check for unfinished work runs once, before the transactions, so that the transactions are short.
// Each transaction only checks that the conversation is unchanged.
func eraseConversation(ctx context.Context, wf *workflow.Workflow, id string, before time.Time) (gone bool, err error) {
	var c store.Conversation
	var chains []string
	var asked []approvers.Request
	over := false
	err = wf.Store.View(ctx, func(r store.Reader) (err error) {
		if c, err = r.Conversation(id); err != nil {
			return store.IgnoreNotFound(err)
		}
		calls, err := workflow.CallsIn(r, id)
		if err != nil {
			return err
		}
		requests, err := r.Requests(id) // a call that people were asked about again has several requests
		if err != nil {
			return err
		}
		runs, err := r.Executions(id)
		if err != nil {
			return err
		}
		if calls, err = withLostMessages(r, calls, requests, runs); err != nil {
			return err
		}
		chains, asked = chainsOf(calls, requests, runs), requests
		over, err = isOver(r, c, runs, before)
		return err
	})
	for err == nil && over && !gone {
		part := chains[:min(len(chains), textBatch)]
		err = wf.Update(ctx, "retain", func(t workflow.Tx) error {
			gone = false
			now, err := t.Conversation(id)
			if over = err == nil && now.Version == c.Version; !over {
				return store.IgnoreNotFound(err) // the conversation has changed since, or was erased
			}
			if len(part) > 0 {
				return eraseTexts(t, part)
			}
			if err := resetStreaks(t, asked, before); err != nil {
				return err
			}
			gone, err = t.EraseConversation(id, batchSize)
			return err
		})
		chains = chains[len(part):]
	}
	return gone, err
}

// withLostMessages adds the calls of turns whose messages were lost, because CallsIn does not find these turns. A turn
// is found through its requests and executions. If a turn has neither, because each of its calls was a question of the
// model or had an error, the texts in the audit records of its calls remain until the audit chains are pruned.
func withLostMessages(r store.Reader, calls []store.Call, requests []approvers.Request, runs []approvers.Execution) ([]store.Call, error) {
	found := map[string]bool{}
	for _, c := range calls {
		found[c.Turn] = true
	}
	var turns []string
	for _, q := range requests {
		turns = append(turns, q.Turn)
	}
	for _, x := range runs {
		turns = append(turns, x.Turn)
	}
	for _, turn := range turns {
		if found[turn] {
			continue
		}
		found[turn] = true
		more, err := r.Calls(turn)
		if err != nil {
			return nil, err
		}
		calls = append(calls, more...)
	}
	return calls, nil
}

// isOver reports whether a conversation may be erased. The conversation must have no current turn, no open grant, and
// no message since the time in the parameter before. No run may be in progress or have an unknown outcome, even if
// somebody chose to ask again for its call.
func isOver(r store.Reader, c store.Conversation, runs []approvers.Execution, before time.Time) (bool, error) {
	if c.Turn != "" || !c.LastAt.Before(before) {
		return false, nil
	}
	grants, err := r.OpenGrants("")
	if err != nil || slices.ContainsFunc(grants, func(g approvers.Grant) bool { return g.Conversation == c.ID }) {
		return false, err
	}
	return !slices.ContainsFunc(runs, func(e approvers.Execution) bool {
		return e.State == approvers.ExecutionExecuting || e.State == approvers.ExecutionUnknown
	}), nil
}

// resetStreaks ends the streaks of approved calls whose last call is older than the time in the parameter before. A
// streak has values of its calls' arguments, and names of approvers.
func resetStreaks(t workflow.Tx, requests []approvers.Request, before time.Time) error {
	for _, r := range requests {
		if err := t.ResetStreak(r.Agent, r.Tool, before); err != nil {
			return err
		}
	}
	return nil
}

// eraseTexts erases the payloads of audit chains, except the reasons of earlier erasures. The audit records and their
// hashes remain. Each audit chain gets a record of the erasure.
func eraseTexts(t workflow.Tx, chains []string) error {
	for _, chain := range chains {
		seqs, err := erasePayloads(t, chain)
		if err != nil {
			return err
		}
		if len(seqs) == 0 {
			continue
		}
		facts := approvers.Erasure{Seqs: seqs}.Facts()
		facts["why"] = "age"
		if err := t.WriteAudit(chain, approvers.AuditErased, "", facts, nil); err != nil {
			return err
		}
	}
	return nil
}

// eraseSetAside deletes damaged records that were moved out of the way before the time in the parameter before.
func eraseSetAside(ctx context.Context, wf *workflow.Workflow, before time.Time, done *Removed) error {
	for over := false; !over; {
		erased := 0
		err := wf.Update(ctx, "retain set aside", func(t workflow.Tx) (err error) {
			s, ok := t.Tx.(store.SetAside)
			if over = !ok; over {
				return nil
			}
			erased, over, err = s.EraseSetAside(t.Now(), before, batchSize)
			return err
		})
		if err != nil {
			return err
		}
		done.SetAside += erased
	}
	return nil
}

// pruneChains deletes the audit chains whose last event was before the time in the parameter before, and that are not in
// use. pruneChains counts them.
func pruneChains(ctx context.Context, wf *workflow.Workflow, now, before time.Time, done *Removed) error {
	var damaged damagedOnes
	for after, more := "", true; more; {
		var old []string
		err := wf.Store.View(ctx, func(r store.Reader) error {
			page, err := r.AuditChains(after, pageSize)
			if err != nil {
				return err
			}
			old, more = nil, len(page) == pageSize
			for _, chain := range page {
				after = chain
				if chain == approvers.InstallationChain {
					continue
				}
				last, err := lastEvent(r, chain)
				if err != nil {
					return err
				}
				if last.IsZero() || !last.Before(before) {
					continue
				}
				stored, err := hasSubject(r, chain)
				if err != nil && !store.OnlyDamaged(err) {
					return err
				}
				if !stored || err != nil { // prune reads the damaged record in Workflow.Update, which handles it
					old = append(old, chain)
				}
			}
			return nil
		})
		if err != nil {
			return err
		}
		for _, chain := range old {
			records, err := prune(ctx, wf, chain, now, before)
			if err != nil && !store.OnlyDamaged(err) {
				return err
			}
			if err != nil {
				damaged.add(err)
				continue
			}
			if records > 0 {
				done.Chains++
				done.Records += records
			}
		}
	}
	return damaged.err("chains of the history")
}

// lastEvent returns the time of a chain's last record that is not about an erasure. If this record can't be read,
// lastEvent returns the zero time.
func lastEvent(r store.Reader, chain string) (time.Time, error) {
	a, err := r.AuditHead(chain)
	for err == nil && a.Kind == approvers.AuditErased && a.Seq > 1 {
		var row approvers.AuditRow
		if row, err = r.AuditRow(chain, a.Seq-1); err != nil {
			break
		}
		if a, err = approvers.ParseAuditRecord(row.Record); err != nil || row.Damaged {
			return time.Time{}, nil //nolint:nilerr // nobody knows how old the chain is
		}
	}
	if errors.Is(err, store.ErrDamaged) || errors.Is(err, store.ErrNotFound) {
		return time.Time{}, nil
	}
	return a.At, err
}

// prune deletes an audit chain that is not in use, and records the deletion in the installation's audit chain. prune
// returns the number of deleted records, or 0 if it keeps the chain.
func prune(ctx context.Context, wf *workflow.Workflow, chain string, now, before time.Time) (records int, err error) {
	err = wf.Update(ctx, "prune", func(t workflow.Tx) error {
		records = 0
		last, err := lastEvent(t, chain)
		if err != nil || last.IsZero() || !last.Before(before) {
			return err
		}
		if used, err := inUse(t, chain, now); used || err != nil {
			return err
		}
		head, err := t.AuditHead(chain)
		if err != nil {
			return err
		}
		if records, err = t.PruneChain(chain); err != nil {
			return err
		}
		facts := approvers.Pruning{Chain: chain, Records: uint64(records), Head: head.Hash}.Facts()
		return t.WriteAudit(approvers.InstallationChain, approvers.AuditPruned, "", facts, nil)
	})
	return records, err
}

// inUse reports whether an audit chain is about something that is still stored or has not ended. The chain of a request,
// an execution or a call is in use as long as the request, execution or call is stored: people can still act on it, and
// the audit compares it with its chain. The chain of a grant is in use as long as the grant is stored, or a call that
// the grant allowed has audit records. The chain of an absence is in use until the absence is over.
func inUse(r store.Reader, chain string, now time.Time) (bool, error) {
	if grant, ok := strings.CutPrefix(chain, approvers.GrantChain("")); ok {
		if _, err := r.Grant(grant); !errors.Is(err, store.ErrNotFound) {
			return true, err
		}
		runs, err := runsUnder(r, grant)
		for _, run := range runs {
			if _, err := r.AuditHead(run); !errors.Is(err, store.ErrNotFound) {
				return true, err
			}
		}
		return false, err
	}
	if who, ok := strings.CutPrefix(chain, approvers.AbsenceChain("")); ok {
		a, err := r.Absence(approvers.PersonID(who))
		return err == nil && !a.Over(now), store.IgnoreNotFound(err)
	}
	return hasSubject(r, chain)
}

// hasSubject reports whether the request, execution or call of an audit chain is stored.
func hasSubject(r store.Reader, chain string) (bool, error) {
	if _, err := r.Request(chain); !errors.Is(err, store.ErrNotFound) {
		return true, err
	}
	if _, err := r.Execution(chain); !errors.Is(err, store.ErrNotFound) {
		return true, err
	}
	if _, err := r.Call(chain); !errors.Is(err, store.ErrNotFound) {
		return true, err
	}
	return false, nil
}
