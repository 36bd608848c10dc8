package workflow

import (
	"context"
	"encoding/json"
	"errors"
	"reflect"

	"countersign/approvers"
	"countersign/store"
)

// Reevaluate holds everything that waits against the policy and the tools, if they are others than last time: cards
// show what has to be passed now, and what nobody can allow any more, or whose tool is not what it was, is voided. It
// runs beside the rest: a decision and a run look at both in any case. What changes meanwhile is looked at next; two at
// once take turns.
func (w *Workflow) Reevaluate(ctx context.Context) error {
	w.reevaluating.Lock()
	defer w.reevaluating.Unlock()
	for {
		now := w.Policy().Hash + " " + w.Tools.Fingerprint()
		known, err := w.reevaluatedFor(ctx)
		if err != nil || known == now {
			return err
		}
		// The first transaction begins after every one that still saw what was before, so that no request slips through that
		// was being written then.
		err = w.openRequests(ctx, "reconsider", func(t *tx, r approvers.Request) error {
			if err := t.reevaluate(r.ID); err != nil {
				return err
			}
			return t.recountCardQueues(r.ID)
		})
		if err != nil {
			return err
		}
		if err := w.showGrants(ctx); err != nil {
			return err
		}
		if err := w.noteReevaluated(ctx, now); err != nil {
			return err
		}
	}
}

// reevaluatedFor names the policy and the tools that everything was held against last; empty: none yet.
func (w *Workflow) reevaluatedFor(ctx context.Context) (which string, err error) {
	err = w.Store.View(ctx, func(r store.Reader) error {
		which = ""
		s, err := r.Setting(store.SettingPolicy)
		if errors.Is(err, store.ErrNotFound) {
			return nil
		}
		if err != nil {
			return err
		}
		return json.Unmarshal(s.Value, &which)
	})
	return which, err
}

// noteReevaluated notes that everything was held against these, or later ones.
func (w *Workflow) noteReevaluated(ctx context.Context, which string) error {
	return w.update(ctx, "re-evaluate", func(t *tx) error {
		p, _, err := paused(t)
		if err != nil {
			return err
		}
		if p.On { // others may end it now
			if err := t.tellPausers(p); err != nil {
				return err
			}
		}
		s, err := t.Setting(store.SettingPolicy)
		if ignoreNotFound(err) != nil {
			return err
		}
		s.Key = store.SettingPolicy
		if s.Value, err = json.Marshal(which); err != nil {
			return err
		}
		return t.PutSetting(s)
	})
}

func (t *tx) reevaluate(id string) error {
	cur, _, err := t.current(id)
	before, r := cur.stored, cur.now
	if err != nil || before.State != approvers.Pending && r.State != approvers.Voided {
		return err // what was approved is held against the policy when it is started
	}
	unchanged := r
	unchanged.Plan.PolicyHash = before.Plan.PolicyHash
	switch {
	case !reflect.DeepEqual(before, unchanged):
		return t.apply(r, cur.events)
	case r.Plan.PolicyHash != before.Plan.PolicyHash:
		return t.PutRequest(r) // nobody would see a difference
	}
	return nil
}
