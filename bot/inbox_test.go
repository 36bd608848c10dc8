package bot

import (
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"testing"
	"time"

	"countersign/approvers"
	"countersign/approvers/workflow"
	"countersign/bot/slackapi"
	"countersign/bot/transport"
	"countersign/store"
	"countersign/store/bolt"
)

// A delivery that fails too often is set aside. During an outage of Slack, the delivery is kept, however often it was
// tried.
func TestDeliveriesAreKeptWhileSlackIsDown(t *testing.T) {
	t.Parallel()
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusBadGateway) }))
	defer srv.Close()
	db, err := bolt.Open(filepath.Join(t.TempDir(), "countersign.db"), bolt.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	log := slog.New(slog.DiscardHandler)
	wf := workflow.New(workflow.Config{Store: db, Policy: func() *approvers.Policy { return &approvers.Policy{} }, Log: log})
	b := New(Config{BotToken: "xoxb-1", APIURL: srv.URL + "/api/", Workflow: Use(wf), Log: log})
	handle := func(event string) (handled bool, err error) {
		t.Helper()
		payload := fmt.Sprintf(`{"type":"event_callback","event_id":%q,"team_id":"T0001","event":{"type":"user_change","user":{"id":"U0002"}}}`, event)
		row := inboxRow(event, transport.Delivery{Kind: store.InboxEvent, Payload: []byte(payload), ReceivedAt: time.Now()})
		if _, err := wf.Intake.Receive(t.Context(), row, ""); err != nil {
			t.Fatal(err)
		}
		err = b.Inbox.Handle(t.Context(), store.Timer{Kind: store.TimerInbox, Ref: event, Tries: maxTries})
		row, notFound := wf.Views.Inbox(t.Context(), event)
		if notFound != nil {
			t.Fatal(notFound)
		}
		return !row.HandledAt.IsZero(), err
	}
	for n := 0; n < 100 && b.api.Available() == nil; n++ { // until the failures count as an outage
		if handled, err := handle(fmt.Sprint("Ev", n)); err != nil || !handled {
			t.Fatalf("failure %d: it is not set aside: %v", n, err)
		}
	}
	if handled, err := handle("EvOutage"); !slackapi.IsPutOff(err) || handled {
		t.Errorf("during the outage: %v; handled: %t", err, handled)
	}
}
