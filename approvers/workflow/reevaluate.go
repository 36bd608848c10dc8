package workflow

import (
	"context"
	"encoding/json"
	"errors"
	"reflect"

	"countersign/approvers"
	"countersign/approvers/workflow/settings"
	"countersign/store"
)

// Reevaluate checks all pending requests against the current policy and tools. If the policy and the tools have not
// changed since the last complete check, Reevaluate does nothing. After the checks, the cards show the new plan of each
// request. Reevaluate voids a request if nobody can approve it under the new policy, or if its tool has changed.
// Reevaluate may run in the background, because every decision and every run also checks the policy and the tools. If
// the policy or the tools change during the checks, Reevaluate starts from the beginning. Concurrent calls of
// Reevaluate run one after the other.
func (w *Requests) Reevaluate(ctx context.Context) error {
	w.reevaluating.Lock()
	defer w.reevaluating.Unlock()
	for {
		now := w.Policy().Hash + " " + w.Tools.Fingerprint()
		known, err := w.reevaluatedFor(ctx)
		if err != nil || known == now {
			return err
		}
		// A transaction that used the old policy may have written a request just before. The transactions of
		// openRequests begin later, so they read this request.
		err = w.openRequests(ctx, "reconsider", func(t *tx, r approvers.Request) error {
			if err := t.requests.reevaluate(r.ID); err != nil {
				return err
			}
			return t.cards.recountCardQueues(r.ID)
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

// reevaluatedFor returns which policy and tools the last complete check used. If there was no complete check, the
// result is "".
func (w *Requests) reevaluatedFor(ctx context.Context) (which string, err error) {
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

// noteReevaluated records that all pending requests were checked against this policy and these tools.
func (w *Requests) noteReevaluated(ctx context.Context, which string) error {
	return w.update(ctx, "re-evaluate", func(t *tx) error {
		p, _, err := settings.ReadPause(t)
		if err != nil {
			return err
		}
		if p.On { // under the new policy, other people may be allowed to end the pause
			if err := t.pauses.tellPausers(p); err != nil {
				return err
			}
		}
		s, err := t.Setting(store.SettingPolicy)
		if store.IgnoreNotFound(err) != nil {
			return err
		}
		s.Key = store.SettingPolicy
		if s.Value, err = json.Marshal(which); err != nil {
			return err
		}
		return t.PutSetting(s)
	})
}

func (t requestsTx) reevaluate(id string) error {
	cur, _, err := t.current(id)
	before, r := cur.stored, cur.now
	if err != nil || before.State != approvers.Pending && r.State != approvers.Voided {
		return err // an approved request is checked when its run is claimed
	}
	unchanged := r
	unchanged.Plan.PolicyHash = before.Plan.PolicyHash
	switch {
	case !reflect.DeepEqual(before, unchanged):
		return t.apply(r, cur.events)
	case r.Plan.PolicyHash != before.Plan.PolicyHash:
		return t.PutRequest(r) // the card would look the same
	}
	return nil
}
