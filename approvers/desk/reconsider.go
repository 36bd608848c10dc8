package desk

import (
	"context"
	"encoding/json"
	"errors"
	"reflect"

	"countersign/approvers"
	"countersign/store"
)

// Reconsider holds everything that waits against the policy, if that is another one than last time: cards show what has to be passed now, and
// what nobody can allow any more is voided. It runs beside the rest: a decision looks at the policy in any case. A policy that
// changes meanwhile is looked at next; two at once take turns.
func (d *Desk) Reconsider(ctx context.Context) error {
	d.reconsidering.Lock()
	defer d.reconsidering.Unlock()
	for {
		policy := d.Policy().Hash
		known, err := d.reconsideredFor(ctx)
		if err != nil || known == policy {
			return err
		}
		// The first transaction begins after every one that still saw the policy before, so that no request slips through that was being written then.
		err = d.openRequests(ctx, "reconsider", func(t *tx, r approvers.Request) error {
			if err := t.reconsider(r.ID); err != nil {
				return err
			}
			return t.recount(r.ID)
		})
		if err != nil {
			return err
		}
		if err := d.showGrants(ctx); err != nil {
			return err
		}
		if err := d.noteReconsidered(ctx, policy); err != nil {
			return err
		}
	}
}

// reconsideredFor is the policy that everything was held against last; empty: none yet.
func (d *Desk) reconsideredFor(ctx context.Context) (hash string, err error) {
	err = d.Store.View(ctx, func(r store.Reader) error {
		hash = ""
		s, err := r.Setting(store.SettingPolicy)
		if errors.Is(err, store.ErrNotFound) {
			return nil
		}
		if err != nil {
			return err
		}
		return json.Unmarshal(s.Value, &hash)
	})
	return hash, err
}

// noteReconsidered notes that everything was held against a policy, or a later one.
func (d *Desk) noteReconsidered(ctx context.Context, policy string) error {
	return d.update(ctx, "reconsider", func(t *tx) error {
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
		if s.Value, err = json.Marshal(policy); err != nil {
			return err
		}
		return t.PutSetting(s)
	})
}

func (t *tx) reconsider(id string) error {
	before, r, _, err := t.current(id)
	if err != nil || before.State != approvers.Pending {
		return err // what was approved is held against the policy when it is started
	}
	unchanged := r
	unchanged.Plan.PolicyHash = before.Plan.PolicyHash
	switch {
	case !reflect.DeepEqual(before, unchanged):
		return t.follow(before, r)
	case r.Plan.PolicyHash != before.Plan.PolicyHash:
		return t.PutRequest(r) // nobody would see a difference
	}
	return nil
}
