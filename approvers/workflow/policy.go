package workflow

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"time"

	"countersign/approvers"
	"countersign/approvers/workflow/settings"
	"countersign/store"
)

// PolicySource provides this process with the policy in force. The policy in force is in the store, where other
// processes may change it.
type PolicySource interface {
	// CatchUp reads the policy in force, and uses it from then on. If this process can't use the policy in force, the
	// error is store.ErrPolicyChanged.
	CatchUp(ctx context.Context) error
	// Usable reports whether this process can use the policy in force. Usable does not read the store, so it answers for
	// the policy that this process read last. While Usable returns false, no work begins.
	Usable() bool
	// Wake tells the source that another process has changed the policy in force. Wake returns without waiting for
	// CatchUp.
	Wake()
}

// ErrPolicyForged means that the audit chain has no valid record of the policy that the store names as the policy in
// force.
var ErrPolicyForged = errors.New("the history does not record this policy: it was not put into force by Countersign")

// PolicyChange is a policy that comes into force.
type PolicyChange struct {
	Load    string // the id of the change, from NewLoad
	Policy  string // the digest of the policy file, and of the files that it names
	Pins    string // the digest of the lock file; empty: there is none
	Content []byte // the bytes of the policy file, the files that it names, and the lock file
	File    string // the result of approvers.Policy.File: the hash of the policy file
	By      string // the process that makes the change
	Why     string // the cause of the change, in one word
}

// NewLoad returns a new id for a change of the policy.
func (w *Policies) NewLoad() string { return w.ids.newID("load", w.Now()) }

// InForce reads which policy is in force, without the policy's content. If no policy is stored, the error is
// store.ErrNotFound.
func (w *Policies) InForce(ctx context.Context) (p store.Policy, err error) {
	err = w.Store.View(ctx, func(r store.Reader) error {
		p, err = r.Policy()
		return err
	})
	if errors.Is(err, store.ErrDamaged) { // only a transaction that may write can set the record aside
		err = w.updateBy(ctx, "read the policy in force", w.transactUnder, func(t *tx) error {
			p, err = t.Policy()
			return err
		})
	}
	return p, err
}

// Content reads the policy in force with its content. If the audit chain has no valid record of this policy, the error
// is ErrPolicyForged.
func (w *Policies) Content(ctx context.Context) (p store.Policy, content []byte, err error) {
	err = w.Store.View(ctx, func(r store.Reader) error {
		if p, err = r.Policy(); err != nil {
			return err
		}
		if content, err = r.PolicyContent(); err != nil {
			return err
		}
		chain, err := r.Audit(approvers.InstallationChain)
		if err != nil {
			return err
		}
		if err := approvers.VerifyChain(chain); err != nil {
			return fmt.Errorf("%w (%w)", ErrPolicyForged, err)
		}
		if !slices.ContainsFunc(chain, func(a approvers.AuditRecord) bool {
			return a.Seq == p.Record && a.Kind == approvers.AuditPolicy && a.Facts["load"] == p.Load && a.Facts["policy"] == p.Policy.Digest && a.Facts["pins"] == p.Pins.Digest
		}) {
			return ErrPolicyForged
		}
		return nil
	})
	return p, content, err
}

// PutIntoForce replaces the policy in force, and records the change. The parameter before is the policy that is
// replaced, or zero if no policy is in force. If the policy in force is not the policy before, the error is
// store.ErrConflict.
func (w *Policies) PutIntoForce(ctx context.Context, before store.Policy, c PolicyChange) (now store.Policy, err error) {
	err = w.updateBy(ctx, "put a policy into force", w.transactUnder, func(t *tx) error {
		stored, err := t.Policy()
		if store.IgnoreNotFound(err) != nil {
			return err
		}
		if stored.Load != before.Load {
			return store.ErrConflict
		}
		facts := map[string]string{"load": c.Load, "number": strconv.FormatUint(stored.Version+1, 10), "policy": c.Policy, "file": c.File, "pins": c.Pins, "process": c.By, "why": c.Why}
		if stored.Version > 0 {
			facts["before_policy"], facts["before_pins"] = stored.Policy.Digest, stored.Pins.Digest
		}
		if err := t.audit(approvers.InstallationChain, approvers.AuditPolicy, "", facts, nil); err != nil {
			return err
		}
		head, err := t.AuditHead(approvers.InstallationChain)
		if err != nil {
			return err
		}
		now = store.Policy{
			Load: c.Load, Version: stored.Version, Record: head.Seq, Content: approvers.SumOf(c.Content).String(),
			Policy: replacePart(stored.Policy, c.Policy, c.By, t.now), Pins: replacePart(stored.Pins, c.Pins, c.By, t.now),
		}
		if err := t.PutPolicy(now, c.Content); err != nil {
			return err
		}
		now.Version++
		t.changesPolicy = true
		return nil
	})
	return now, err
}

// replacePart returns the new value of one part of the policy in force: of the policy file, or of the lock file. If the
// digest is unchanged, the result is the old value, which says who last changed this part and when.
func replacePart(old store.PolicyPart, digest, by string, at time.Time) store.PolicyPart {
	if old.Digest == digest && !old.At.IsZero() {
		return old
	}
	return store.PolicyPart{Digest: digest, By: by, At: at}
}

// Reevaluate checks all pending requests against the current policy, and all open requests against the current tools.
// If the policy and the tools have not changed since the last complete check, Reevaluate does nothing. After the
// checks, the cards show the new plan of each request. Reevaluate voids a request if nobody can approve it under the
// new policy, or if its tool has changed. Reevaluate may run in the background, because every decision and every run
// also checks the policy and the tools. If the policy or the tools change during the checks, Reevaluate starts from the
// beginning. Concurrent calls of Reevaluate run one after the other.
func (w *Requests) Reevaluate(ctx context.Context) error {
	w.reevaluating.Lock()
	defer w.reevaluating.Unlock()
	for {
		now := w.Policy().Hash + " " + w.Tools.Fingerprint()
		known, err := w.reevaluatedFor(ctx)
		if err != nil || known == now {
			return err
		}
		// A transaction that used the old policy may have written a request shortly before this point. The transactions
		// of openRequests begin later, so they read this request.
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
		if p.On { // the new policy may let other people end the pause, so they get the message too
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
		return t.PutRequest(r) // only the policy's hash in the plan has changed, which the card does not show
	}
	return nil
}
