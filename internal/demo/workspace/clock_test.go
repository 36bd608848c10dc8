package workspace

import (
	"bytes"
	"net/http"
	"slices"
	"testing"
	"time"

	"github.com/slack-go/slack"

	"countersign/internal/demo/workspace/wire"
)

// The test moves the workspace's clock ahead by days. Triggers and tickets stay valid, because their short deadlines
// use the machine's clock. A response URL has expired. Messages keep their order.
func TestTheClockJumpsAhead(t *testing.T) {
	b := newHarness(t)
	app := b.connect(nil)
	first := b.say("sam", "C0001", "before", "")
	wait(t, app.events)
	b.must(b.post("/people/sam/commands", obj{"channel": "C0001", "command": "/countersign", "text": ""}))
	command := wait(t, app.events).Data.(slack.SlashCommand)
	_, ticket, err := b.api.StartSocketModeContext(t.Context())
	if err != nil {
		t.Fatal(err)
	}

	b.clock.advance(72 * time.Hour)

	if _, err := b.api.OpenView(command.TriggerID, request("T")); err != nil {
		t.Errorf("the trigger expired by the workspace's clock: %v", err)
	}
	if _, status := b.open(ticket); status != http.StatusSwitchingProtocols {
		t.Errorf("the ticket expired by the workspace's clock: %d", status)
	}
	later := b.trigger("U0001", "")
	b.ticks.advance(3*time.Second + time.Millisecond)
	if _, err := b.api.OpenView(later, request("T")); code(err) != "expired_trigger_id" {
		t.Errorf("a trigger from after the jump, three seconds later: %v", err)
	}
	resp, err := http.Post(command.ResponseURL, "application/json", bytes.NewReader([]byte(`{"text":"x"}`)))
	if err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
	if resp.StatusCode != http.StatusNotFound {
		t.Errorf("a response_url of three days ago: %d", resp.StatusCode)
	}
	_, second, err := b.api.PostMessage("C0001", text("after"))
	if err != nil {
		t.Fatal(err)
	}
	b.clock.advance(-72 * time.Hour) // the clock jumps back, as when a process restarts with the machine's time
	third := b.say("sam", "C0001", "later still", "")
	if order := []string{first, second, third}; !slices.IsSorted(order) {
		t.Errorf("out of order: %v", order)
	}
	if micros, _ := wire.ParseTS(second); micros/1e6 != b.clock.Now().Add(72*time.Hour).Unix() {
		t.Errorf("the second message's time is %s", second)
	}
}

// Answers for the page contain the workspace's time.
func TestThePageLearnsTheTime(t *testing.T) {
	b := newHarness(t)
	b.clock.advance(72 * time.Hour)
	resp, err := http.Get(b.http.URL + "/people")
	if err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
	if got, err := http.ParseTime(resp.Header.Get("Date")); err != nil || !got.Equal(b.clock.Now()) {
		t.Errorf("the answer's date is %s, want %v", resp.Header.Get("Date"), b.clock.Now())
	}
}

// Without a configured clock, a workspace uses the machine's clock.
func TestTheMachinesClock(t *testing.T) {
	cfg := Config{}.withDefaults()
	for _, now := range []time.Time{cfg.Now(), cfg.machine()} {
		if since := time.Since(now); since < 0 || since > time.Minute {
			t.Errorf("the clock says %v", now)
		}
	}
}
