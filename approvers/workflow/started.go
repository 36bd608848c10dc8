package workflow

import (
	"context"

	"countersign/approvers"
)

// Started records that a process begins to work on the store. The facts say which program it is.
func (w *History) Started(ctx context.Context, facts map[string]string) error {
	return w.record(ctx, "start", func(t *tx) error {
		return t.audit(approvers.InstallationChain, approvers.AuditStarted, "", facts, nil)
	})
}
