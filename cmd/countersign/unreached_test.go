package main

import (
	"log/slog"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"countersign/approvers"
	"countersign/approvers/workflow"
	"countersign/cmd/countersign/metrics"
	"countersign/store"
	"countersign/store/bolt"
)

// /readyz and the metrics report the channels of the policy in which the bot can't write, and no others.
func TestLostChannelsAreTold(t *testing.T) {
	db := emptyStore(t)
	policy := func() *approvers.Policy {
		return &approvers.Policy{Agents: []approvers.Agent{{Name: "support", Channels: []string{"#support", "C0002", "*"}}}}
	}
	clock := time.Date(2026, 3, 2, 12, 0, 0, 0, time.UTC)
	wf := workflow.New(workflow.Config{Store: db, Policy: policy, Log: slog.New(slog.DiscardHandler), Now: func() time.Time { return clock }})
	m := metrics.New(db, policy)
	m.WatchWaiting(wf, db, slog.New(slog.DiscardHandler))
	check := reportLostChannels(wf)
	if err := check(t.Context()); err != nil {
		t.Errorf("before the loss: %v", err)
	}
	for channel, name := range map[string]string{"C0001": "#support", "C0002": "#support-approvals", "C0003": "#general"} {
		if err := wf.Intake.ChannelLost(t.Context(), "", channel, "it was archived", name); err != nil {
			t.Fatal(err)
		}
	}
	want := "the bot can't write in #support since 2026-03-02T12:00:00Z: it was archived; the bot can't write in C0002 since 2026-03-02T12:00:00Z: it was archived. " +
		"Invite the bot there again, or change the policy"
	if err := check(t.Context()); err == nil || err.Error() != want {
		t.Errorf("/readyz says: %v", err)
	}
	wantLines(t, scrape(t, m), `countersign_channels_lost 2`)
}

// /readyz and countersign pending report a request whose card nobody can see. Both give Slack's reason, and countersign
// pending says where people can decide the request. They also report a request with too few people who may decide it.
func TestUnreachedIsTold(t *testing.T) {
	db, err := bolt.Open(filepath.Join(t.TempDir(), "s.db"), bolt.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	wf := workflow.New(workflow.Config{Store: db, Policy: func() *approvers.Policy { return &approvers.Policy{} }})
	if err := reportUnreached(wf)(t.Context()); err != nil {
		t.Errorf("without requests: %v", err)
	}
	since := time.Date(2026, 3, 2, 12, 0, 0, 0, time.UTC)
	r := approvers.Request{
		ID: "req_1", State: approvers.Pending, Turn: "turn_1", Plan: approvers.Plan{Stages: []approvers.Stage{{Approver: "lead", Quorum: 1}}}, CreatedAt: since,
		Unreached: &approvers.Unreached{Since: since, Cause: "conversations.open: missing_scope: im:write"},
	}
	if err := db.Update(t.Context(), func(tx store.Tx) error { return tx.PutRequest(r) }); err != nil {
		t.Fatal(err)
	}
	want := "1 request waits with a card that nobody who may decide can see, since 2026-03-02T12:00:00Z: conversations.open: missing_scope: im:write. countersign pending lists them"
	if err := reportUnreached(wf)(t.Context()); err == nil || err.Error() != want {
		t.Errorf("/readyz says: %v", err)
	}
	var trouble []string
	err = db.View(t.Context(), func(s store.Reader) (err error) {
		trouble, err = cardTrouble(s, r)
		return err
	})
	if err != nil || len(trouble) != 1 || !strings.Contains(trouble[0], "(conversations.open: missing_scope: im:write); people who may decide it find it on the app's Home tab") {
		t.Errorf("pending says: %q, %v", trouble, err)
	}
	few := r
	few.ID, few.Unreached = "req_2", &approvers.Unreached{Since: since, Cause: approvers.TooFew, Able: 1}
	few.Plan.Stages = []approvers.Stage{{Approver: "lead", Quorum: 2}}
	if err := db.Update(t.Context(), func(tx store.Tx) error { return tx.PutRequest(few) }); err != nil {
		t.Fatal(err)
	}
	want = strings.TrimSuffix(want, ". countersign pending lists them") + "; 1 request needs more people than may decide it, since 2026-03-02T12:00:00Z. countersign pending lists them"
	if err := reportUnreached(wf)(t.Context()); err == nil || err.Error() != want {
		t.Errorf("/readyz says: %v", err)
	}
	err = db.View(t.Context(), func(s store.Reader) (err error) {
		trouble, err = cardTrouble(s, few)
		return err
	})
	if err != nil || len(trouble) == 0 || !strings.HasPrefix(trouble[0], "It needs 2 people who approve, and only 1 can, since ") {
		t.Errorf("pending says: %q, %v", trouble, err)
	}
	r.Unreached = nil
	err = db.View(t.Context(), func(s store.Reader) (err error) {
		trouble, err = cardTrouble(s, r)
		return err
	})
	if err != nil || len(trouble) != 1 || trouble[0] != "no card is in Slack yet; people who may decide it find it on the app's Home tab" {
		t.Errorf("pending says: %q, %v", trouble, err)
	}
}
