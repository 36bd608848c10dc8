package retention

import (
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	"countersign/approvers"
	"countersign/approvers/workflow"
	"countersign/store"
)

// This file erases old grants, absences and Home tabs. Audit records about grants and absences are erased later, with
// the other audit records: see prune.

// eraseGrants erases grants that ended before the time in the parameter before. A grant stays as long as a run under
// the grant is stored, because messages about the run name the grant.
func eraseGrants(ctx context.Context, wf *workflow.Workflow, before time.Time, done *Removed) error {
	var damaged damagedOnes
	for after, more := "", true; more; {
		var old []string
		err := wf.Store.View(ctx, func(r store.Reader) error {
			page, err := r.ClosedGrants(after, pageSize)
			if err != nil {
				return err
			}
			old, more = nil, len(page) == pageSize
			for _, g := range page {
				after = g.ID
				if !g.ClosedAt.Before(before) {
					continue
				}
				stored, err := hasRuns(r, g.ID)
				switch {
				case errors.Is(err, store.ErrDamaged):
					damaged.add(err)
				case err != nil:
					return err
				case !stored:
					old = append(old, g.ID)
				}
			}
			return nil
		})
		if err != nil {
			return err
		}
		for _, id := range old {
			err := wf.Update(ctx, "retain grant", func(t workflow.Tx) error { return eraseGrant(t, id) })
			if err != nil && !store.OnlyDamaged(err) {
				return err
			}
			if err != nil {
				damaged.add(err)
				continue
			}
			done.Grants++
		}
	}
	return damaged.err("grants")
}

// runsUnder lists the ids of the executions that ran under a grant, according to the grant's audit chain.
func runsUnder(r store.Reader, grant string) (ids []string, err error) {
	records, err := r.Audit(approvers.GrantChain(grant))
	for _, a := range records {
		if a.Kind == approvers.AuditGranted && a.Facts["what"] == "used" {
			ids = append(ids, a.Facts["execution"])
		}
	}
	return ids, err
}

// hasRuns reports whether an execution that ran under a grant is stored.
func hasRuns(r store.Reader, grant string) (bool, error) {
	ids, err := runsUnder(r, grant)
	for _, id := range ids {
		if _, err := r.Execution(id); !errors.Is(err, store.ErrNotFound) {
			return true, err
		}
	}
	return false, err
}

// eraseGrant erases a grant, its messages, and the texts of its audit records.
func eraseGrant(t workflow.Tx, id string) error {
	if err := eraseMessages(t, id, func(store.OutboxMessage) bool { return true }); err != nil {
		return err
	}
	if err := eraseTexts(t, []string{approvers.GrantChain(id)}); err != nil {
		return err
	}
	return t.EraseGrant(id)
}

// eraseMessages erases the outbox messages that have the given Ref, and for which the function old returns true.
func eraseMessages(t workflow.Tx, ref string, old func(store.OutboxMessage) bool) error {
	list, err := t.OutboxMessagesOf(ref)
	if err != nil {
		return err
	}
	for _, s := range list {
		if !old(s) {
			continue
		}
		if err := t.EraseOutboxMessage(s.ID); err != nil {
			return err
		}
	}
	return nil
}

// eraseAbsences erases absences that ended before the time in the parameter before, and notices about earlier absences
// of the same person.
func eraseAbsences(ctx context.Context, wf *workflow.Workflow, before time.Time, done *Removed) error {
	var damaged damagedOnes
	var old []approvers.PersonID
	err := wf.Store.View(ctx, func(r store.Reader) error {
		old = nil
		all, err := r.Absences()
		for _, a := range all {
			there, err := hasMessage(r, string(a.Who), oldNotice(a, before))
			if err != nil {
				return err
			}
			if there || a.Over(before) {
				old = append(old, a.Who)
			}
		}
		return err
	})
	if err != nil {
		return err
	}
	for _, who := range old {
		erased := false
		err := wf.Update(ctx, "retain absence", func(t workflow.Tx) error {
			a, err := t.Absence(who)
			if err != nil {
				return store.IgnoreNotFound(err)
			}
			if err := eraseMessages(t, string(who), oldNotice(a, before)); err != nil {
				return err
			}
			if erased = a.Over(before); !erased {
				return nil
			}
			return errors.Join(t.ClearTimer(store.TimerAway, string(who)), t.EraseAbsence(who))
		})
		if err != nil && !store.OnlyDamaged(err) {
			return err
		}
		if err != nil {
			damaged.add(err)
			continue
		}
		if erased {
			done.Absences++
		}
	}
	return damaged.err("absences")
}

// oldNotice returns a function that reports whether a message to a stand-in is old. A message is old if the absence
// ended before the time in the parameter before. A message about an earlier absence of the person is old if it is from
// before that time.
func oldNotice(a approvers.Absence, before time.Time) func(store.OutboxMessage) bool {
	return func(s store.OutboxMessage) bool {
		earlier := s.Step < int(a.Version) && s.State != store.OutboxWanted && s.CreatedAt.Before(before)
		return s.Kind == store.OutboxStandIn && (earlier || a.Over(before))
	}
}

// hasMessage reports whether a Ref has an outbox message for which the function old returns true. If a message is
// damaged, hasMessage returns true. eraseMessages then reads the messages in Workflow.Update, which handles damaged
// records.
func hasMessage(r store.Reader, ref string, old func(store.OutboxMessage) bool) (bool, error) {
	list, err := r.OutboxMessagesOf(ref)
	if errors.Is(err, store.ErrDamaged) {
		return true, nil
	}
	return slices.ContainsFunc(list, old), err
}

// eraseHomes erases the outbox messages of Home tabs that nobody has opened since the time in the parameter before.
// Such a message has the time at which the person last opened the tab. When the person opens the tab again, Homes.Open
// makes a new message.
func eraseHomes(ctx context.Context, wf *workflow.Workflow, before time.Time, done *Removed) error {
	var damaged damagedOnes
	old := func(s store.OutboxMessage) bool {
		if s.Home == nil {
			return false
		}
		idle := s.State == store.OutboxShown && s.Home.Idle || s.State == store.OutboxUnreachable
		return s.Home.At.Before(before) && idle
	}
	for after, more := store.HomeRef(""), true; more; {
		var refs []string
		err := wf.Store.View(ctx, func(r store.Reader) error {
			page, err := r.OutboxRefs(after, pageSize)
			if err != nil {
				return err
			}
			refs, more = nil, len(page) == pageSize
			for _, ref := range page {
				if after = ref; !strings.HasPrefix(ref, store.HomeRef("")) {
					more = false
					break
				}
				there, err := hasMessage(r, ref, old)
				if err != nil {
					return err
				}
				if there {
					refs = append(refs, ref)
				}
			}
			return nil
		})
		if err != nil {
			return err
		}
		for _, ref := range refs {
			err := wf.Update(ctx, "retain home", func(t workflow.Tx) error { return eraseMessages(t, ref, old) })
			if err != nil && !store.OnlyDamaged(err) {
				return err
			}
			if err != nil {
				damaged.add(err)
				continue
			}
			done.Homes++
		}
	}
	return damaged.err("Home tabs")
}
