package desk

import (
	"context"
	"encoding/json"
	"errors"
	"slices"

	"countersign/approvers"
	"countersign/store"
)

// reconsidered is how many requests are read at once.
const reconsidered = 200

// Reconsider holds everything that waits against the policy, if that is another one than last time: cards show what has to be passed now, and
// what nobody can allow any more is voided. It runs beside the rest: a decision looks at the policy in any case.
func (d *Desk) Reconsider(ctx context.Context) error {
	policy := d.Policy().Hash
	known, err := d.reconsideredFor(ctx)
	if err != nil || known == policy {
		return err
	}
	for after, more := (store.RequestCursor{}), true; more; {
		var page []approvers.Request
		err := d.Store.View(ctx, func(r store.Reader) (err error) {
			page, err = r.OpenRequests(after, reconsidered)
			return err
		})
		if err != nil {
			return err
		}
		more = len(page) == reconsidered
		for _, r := range page {
			after = store.RequestCursor{CreatedAt: r.CreatedAt, ID: r.ID}
			if err := d.update(ctx, "reconsider", func(t *tx) error { return t.reconsider(r.ID) }); err != nil {
				return err
			}
		}
	}
	return d.update(ctx, "reconsider", func(t *tx) error {
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

func (t *tx) reconsider(id string) error {
	before, r, _, err := t.current(id)
	if err != nil || before.State != approvers.Pending {
		return err // what was approved is held against the policy when it is started
	}
	if r.State != before.State || r.Plan.Risk != before.Plan.Risk || !slices.Equal(r.Plan.Stages, before.Plan.Stages) {
		return t.follow(before, r)
	}
	if r.Plan.PolicyHash != before.Plan.PolicyHash {
		return t.PutRequest(r)
	}
	return nil
}
