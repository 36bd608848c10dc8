package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"countersign/approvers"
	"countersign/approvers/audit"
	"countersign/approvers/workflow"
	"countersign/store"
)

// unreachableTarget is where no head can be brought.
type unreachableTarget struct{}

func (unreachableTarget) String() string                                    { return "somewhere" }
func (unreachableTarget) Last(context.Context, store.Store) (uint64, error) { return 0, nil }
func (unreachableTarget) Ship(context.Context, []store.Head) error          { return errors.New("unreachable") }

// /readyz and /metrics tell of heads that can't be brought, and the bot stays ready.
func TestHeadsThatAreNotBroughtAreShown(t *testing.T) {
	db := emptyStore(t)
	wf := workflow.New(workflow.Config{Store: db, Policy: func() *approvers.Policy { return &approvers.Policy{} }})
	sealer := audit.NewSealer([]approvers.SealKey{newKey(t, "countersign-test")}, []audit.HeadTarget{unreachableTarget{}}, wf.History, db, slog.New(slog.DiscardHandler))
	for n := range 3 {
		err := db.Update(t.Context(), func(tx store.Tx) error {
			a := approvers.AuditRecord{Chain: fmt.Sprint("req_", n), At: time.Unix(1, 0), Kind: approvers.AuditProposed}
			return tx.AppendAudit(a.Link(approvers.AuditRecord{}), nil)
		})
		if err != nil {
			t.Fatal(err)
		}
		sealer.Finish(t.Context())
	}
	page := httptest.NewRecorder()
	admin(sealProbes(sealer), newMetrics(db, nil).handler()).ServeHTTP(page, httptest.NewRequest(http.MethodGet, "/readyz", nil))
	if page.Code != 200 || !strings.Contains(page.Body.String(), "heads: somewhere: unreachable") || !strings.Contains(page.Body.String(), "seal: ok") {
		t.Errorf("/readyz says %d\n%s", page.Code, page.Body)
	}
	m := newMetrics(db, nil)
	m.watchSeal(db, sealer)
	text := httptest.NewRecorder()
	m.handler().ServeHTTP(text, httptest.NewRequest(http.MethodGet, "/metrics", nil))
	for _, want := range []string{"countersign_audit_unsealed 0", `countersign_audit_heads_waiting{to="somewhere"} 3`} {
		if !strings.Contains(text.Body.String(), want) {
			t.Errorf("/metrics lacks %s:\n%s", want, text.Body)
		}
	}
}
