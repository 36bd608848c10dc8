package workflow_test

import (
	"context"
	"errors"

	"countersign/approvers/workflow/invariants"
	"countersign/store"
)

// invariants checks the invariants of the store, which must hold after each transaction. The calls and messages are
// checked only for the turns that the test began.
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
