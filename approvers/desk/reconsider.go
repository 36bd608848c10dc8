package desk

import (
	"context"
	"encoding/json"
	"errors"
	"reflect"

	"countersign/approvers"
	"countersign/store"
)

// Reconsider holds everything that waits against the policy and the tools, if they are others than last time: cards show what has to be passed now, and
// what nobody can allow any more, or whose tool is not what it was, is voided. It runs beside the rest: a decision and a run look at both in any case. What
// changes meanwhile is looked at next; two at once take turns.
func (d *Desk) Reconsider(ctx context.Context) error {
	d.reconsidering.Lock()
	defer d.reconsidering.Unlock()
	for {
		now := d.Policy().Hash + " " + d.Tools.Fingerprint()
		known, err := d.reconsideredFor(ctx)
		if err != nil || known == now {
			return err
		}
		// The first transaction begins after every one that still saw what was before, so that no request slips through that was being written then.
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
		if err := d.noteReconsidered(ctx, now); err != nil {
			return err
		}
	}
}

// reconsideredFor names the policy and the tools that everything was held against last; empty: none yet.
func (d *Desk) reconsideredFor(ctx context.Context) (which string, err error) {
	err = d.Store.View(ctx, func(r store.Reader) error {
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

// noteReconsidered notes that everything was held against these, or later ones.
func (d *Desk) noteReconsidered(ctx context.Context, which string) error {
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
		if s.Value, err = json.Marshal(which); err != nil {
			return err
		}
		return t.PutSetting(s)
	})
}

func (t *tx) reconsider(id string) error {
	before, r, _, err := t.current(id)
	if err != nil || before.State != approvers.Pending && r.State != approvers.Voided {
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
