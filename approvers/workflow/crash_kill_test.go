package workflow_test

import (
	"context"

	"countersign/internal/testkit"
	"countersign/store"
)

// The type stopped is the panic value by which a test kills the process. The next process gets only the file of the
// killed process.
type stopped struct{}

// mortal is a store whose process a test may kill before or after the commit of a transaction.
type mortal struct {
	store.Store
	reach func(point string)
}

func (m *mortal) Update(ctx context.Context, fn func(store.Tx) error) error {
	transition, rehearsed := testkit.CallingTransition(), false
	err := m.Store.Update(ctx, func(tx store.Tx) error {
		if err := fn(tx); err != nil || rehearsed {
			return err
		}
		rehearsed = true
		m.reach(transition + testkit.BeforeCommit)
		return nil
	})
	if err == nil {
		m.reach(transition + testkit.BehindCommit)
	}
	return err
}

// These constants are the crash points between transactions. At some of these points, an action outside of the store
// has happened, but is not recorded yet. At the other points, the store has recorded the next action outside of the
// store, but the action has not happened yet.
const (
	notAcknowledged = "a delivery is stored, but not acknowledged"
	notHandled      = "a delivery is acknowledged, but not handled"
	modelAnswered   = "the model has answered"
	notPosted       = "a card is about to be posted"
	notShown        = "Slack has accepted a post"
	notCalled       = "the run is claimed, but the tool is not called"
	notActed        = "the tool is called, but has not acted"
	notAnswered     = "the tool has acted, but has not answered"
	notRecorded     = "the tool has answered"
)
