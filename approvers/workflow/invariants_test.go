package workflow_test

import (
	"context"
	"errors"

	"countersign/approvers/workflow/invariants"
	"countersign/store"
)

// invariants checks the store's invariants, which must hold between any two transactions. The function checks them for
// the turns that the test began.
func (h *harness) invariants() {
	h.t.Helper()
	if err := h.faults(); err != nil {
		h.t.Errorf("the invariants do not hold:\n%v", err)
	}
}

func (h *harness) faults() error {
	ctx := context.Background()
	return errors.Join(h.store.Check(ctx), h.store.View(ctx, func(r store.Reader) error { return invariants.Faults(r, h.turns) }))
}

func b2i(b bool) int {
	if b {
		return 1
	}
	return 0
}
