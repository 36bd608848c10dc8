package workspace

import (
	"encoding/json"
	"net/http"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/gorilla/websocket"
	"github.com/slack-go/slack"
	"github.com/slack-go/slack/socketmode"
)

// raw is a socket without slack-go's help: what Slack's other clients would see.
type raw struct {
	t     testing.TB
	b     *bench
	conn  *websocket.Conn
	pings chan struct{}
}

// open dials a socket's URL as Slack's clients do; without one it returns the status.
func (b *bench) open(url string) (*websocket.Conn, int) {
	b.t.Helper()
	conn, resp, err := websocket.DefaultDialer.Dial(url, http.Header{"Origin": {"https://api.slack.com"}})
	if resp == nil {
		b.t.Fatal(err)
	}
	defer resp.Body.Close()
	if err != nil {
		return nil, resp.StatusCode
	}
	b.t.Cleanup(func() {
		if err := conn.Close(); err != nil {
			b.t.Error(err)
		}
	})
	return conn, resp.StatusCode
}

func (b *bench) dial() *raw {
	b.t.Helper()
	req, _ := http.NewRequest(http.MethodPost, b.http.URL+"/api/apps.connections.open", nil)
	req.Header.Set("Authorization", "Bearer "+DemoAppToken)
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		b.t.Fatal(err)
	}
	defer resp.Body.Close()
	var opened struct{ URL string }
	if err := json.NewDecoder(resp.Body).Decode(&opened); err != nil {
		b.t.Fatal(err)
	}
	conn, _ := b.open(opened.URL)
	r := &raw{t: b.t, b: b, conn: conn, pings: make(chan struct{}, 10)}
	conn.SetPingHandler(func(string) error { r.pings <- struct{}{}; return nil })
	if hello := r.next(); hello["type"] != "hello" || dig(hello, "connection_info", "app_id") != "A0001" {
		b.t.Fatalf("the first frame is %v", hello)
	}
	return r
}

func (r *raw) next() obj {
	r.t.Helper()
	var frame obj
	if err := r.conn.SetReadDeadline(time.Now().Add(10 * time.Second)); err != nil {
		r.t.Fatal(err)
	}
	if err := r.conn.ReadJSON(&frame); err != nil {
		r.t.Fatal(err)
	}
	return frame
}

func (r *raw) ack(frame obj, payload any) {
	r.t.Helper()
	if err := r.conn.WriteJSON(obj{"envelope_id": frame["envelope_id"], "payload": payload}); err != nil {
		r.t.Fatal(err)
	}
}

// settle acknowledges and waits until that has been heard.
func (r *raw) settle(frame obj) {
	r.t.Helper()
	_, before := r.b.srv.hub.Delivered()
	r.ack(frame, nil)
	heard := func() bool {
		_, pending := r.b.srv.hub.Delivered()
		return pending < before
	}
	for deadline := time.Now().Add(10 * time.Second); !heard(); runtime.Gosched() {
		if time.Now().After(deadline) {
			r.t.Fatal("an acknowledgement was not heard")
		}
	}
}

func quick(c *Config) {
	c.AckTimeout = 30 * time.Millisecond
	c.RetryDelays = []time.Duration{0, 10 * time.Millisecond, 20 * time.Millisecond}
}

// An event that nobody acknowledges comes four times in all, each time in a new
// envelope with the same event_id.
func TestUnacknowledgedEventsComeAgain(t *testing.T) {
	b := newBench(t, quick)
	sock := b.dial()
	b.say("sam", "#support", "hello", "")
	seen := map[any]bool{}
	var event any
	for attempt := range 4 {
		frame := sock.next()
		if frame["type"] != "events_api" || frame["retry_attempt"] != float64(attempt) || frame["accepts_response_payload"] != false {
			t.Fatalf("attempt %d: %v", attempt, frame)
		}
		if attempt > 0 && frame["retry_reason"] != "timeout" {
			t.Errorf("reason of attempt %d: %v", attempt, frame["retry_reason"])
		}
		if seen[frame["envelope_id"]] {
			t.Error("an envelope_id was used again")
		}
		seen[frame["envelope_id"]] = true
		if id := dig(frame, "payload", "event_id"); event == nil {
			event = id
		} else if id != event {
			t.Errorf("the event_id changed from %v to %v", event, id)
		}
	}
	b.say("sam", "#support", "and then", "")
	if frame := sock.next(); frame["retry_attempt"] != 0.0 || dig(frame, "payload", "event", "text") != "and then" {
		t.Fatalf("after four attempts the event still comes: %v", frame)
	}
}

func TestAcknowledgedEventsDontComeAgain(t *testing.T) {
	b := newBench(t)
	sock := b.dial()
	b.say("sam", "#support", "one", "")
	sock.settle(sock.next())
	if _, pending := b.srv.hub.Delivered(); pending != 0 {
		t.Errorf("%d deliveries are still pending", pending)
	}
	b.say("sam", "#support", "two", "")
	if frame := sock.next(); dig(frame, "payload", "event", "text") != "two" {
		t.Fatalf("came again: %v", frame)
	}
}

// What happened while the app was away is delivered when it comes back, in order.
func TestEventsWaitForAnApp(t *testing.T) {
	b := newBench(t)
	b.say("sam", "#support", "one", "")
	b.say("sam", "#support", "two", "")
	sock := b.dial()
	for _, want := range []string{"one", "two"} {
		if frame := sock.next(); dig(frame, "payload", "event", "text") != want || frame["retry_attempt"] != 0.0 {
			t.Fatalf("got %v, want %s", frame, want)
		}
	}
}

// A socket that breaks with unacknowledged events loses none of them.
func TestEventsOfABrokenSocketComeAgain(t *testing.T) {
	b := newBench(t)
	first := b.dial()
	for _, text := range []string{"one", "two", "three"} {
		b.say("sam", "#support", text, "")
	}
	first.settle(first.next())
	first.next()
	b.srv.DropSockets()
	second := b.dial()
	for _, want := range []string{"two", "three"} {
		frame := second.next()
		if dig(frame, "payload", "event", "text") != want || frame["retry_attempt"] != 1.0 || frame["retry_reason"] != "connection_failed" {
			t.Fatalf("got %v, want %s", frame, want)
		}
		second.ack(frame, nil)
	}
}

func (b *bench) postButton(channel string) (ts string) {
	b.t.Helper()
	_, ts, err := b.api.PostMessage(channel, slack.MsgOptionText("card", false), slack.MsgOptionBlocks(
		slack.NewActionBlock("b", slack.NewButtonBlockElement("go", "v1", slack.NewTextBlockObject("plain_text", "Go", false, false)))))
	if err != nil {
		b.t.Fatal(err)
	}
	return ts
}

// A click is sent once. Without an acknowledgement the person is told.
func TestClicksAreNotSentAgain(t *testing.T) {
	b := newBench(t, quick)
	ts := b.postButton("C0001")
	click := obj{"channel": "C0001", "ts": ts, "action_id": "go"}
	if r := b.post("/people/ada/actions", click); r.status != 504 || r.code() != "app_did_not_respond" {
		t.Fatalf("without any app: %v", r)
	}
	sock := b.dial()
	for range 4 { // the message itself, never acknowledged
		sock.next()
	}
	if r := b.post("/people/ada/actions", click); r.status != 504 || r.code() != "app_did_not_respond" {
		t.Fatalf("without an acknowledgement: %v", r)
	}
	if frame := sock.next(); frame["type"] != "interactive" || frame["accepts_response_payload"] != true || frame["retry_attempt"] != nil {
		t.Fatalf("the click: %v", frame)
	}
	b.say("sam", "#support", "next", "")
	if frame := sock.next(); frame["type"] != "events_api" {
		t.Fatalf("the click came again: %v", frame)
	}
}

// An acknowledgement of 20 KB is dropped without a word; one byte less is taken.
func TestBigAcknowledgementsAreDropped(t *testing.T) {
	b := newBench(t, func(c *Config) { c.AckTimeout = 500 * time.Millisecond })
	sock := b.dial()
	run := func(size int) reply {
		done := make(chan reply, 1)
		go func() {
			done <- b.post("/people/sam/commands", obj{"channel": "C0001", "command": "/countersign", "text": ""})
		}()
		frame := sock.next()
		bare, _ := json.Marshal(obj{"envelope_id": frame["envelope_id"], "payload": obj{"text": ""}})
		sock.ack(frame, obj{"text": strings.Repeat("x", size-len(bare)-1)}) // WriteJSON ends with a newline
		return wait(t, done)
	}
	if r := run(20*1024 - 1); r.status != 200 {
		t.Errorf("20 KB less one: %v", r)
	}
	if r := run(20 * 1024); r.status != 504 {
		t.Errorf("20 KB: %d", r.status)
	}
}

func TestEnvelopesGoToAnySocket(t *testing.T) {
	turn := 0
	b := newBench(t, func(c *Config) { c.Pick = func(n int) int { turn++; return turn % n } })
	one, two := b.dial(), b.dial()
	b.say("sam", "#support", "one", "")
	b.say("sam", "#support", "two", "")
	if frame := two.next(); dig(frame, "payload", "event", "text") != "one" {
		t.Errorf("second socket: %v", frame)
	}
	if frame := one.next(); dig(frame, "payload", "event", "text") != "two" {
		t.Errorf("first socket: %v", frame)
	}
}

func TestTenSocketsAndNoMore(t *testing.T) {
	b := newBench(t)
	for range 10 {
		b.dial()
	}
	if _, _, err := b.api.StartSocketModeContext(t.Context()); err == nil || err.Error() != "too_many_websockets" {
		t.Fatalf("an eleventh socket: %v", err)
	}
}

func TestATicketOpensOneSocket(t *testing.T) {
	b := newBench(t)
	_, url, err := b.api.StartSocketModeContext(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	b.ticks.advance(ticketLives + time.Second)
	if _, status := b.open(url); status != http.StatusForbidden {
		t.Errorf("an old ticket: %d", status)
	}
	_, url, err = b.api.StartSocketModeContext(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if _, status := b.open(url); status != http.StatusSwitchingProtocols {
		t.Errorf("a fresh ticket: %d", status)
	}
	if _, status := b.open(url); status != http.StatusForbidden {
		t.Errorf("a used ticket: %d", status)
	}
}

// slack-go closes on a disconnect and comes back by itself.
func TestDisconnectMakesTheAppReconnect(t *testing.T) {
	b := newBench(t)
	app := b.connect(nil)
	if err := b.srv.Disconnect("refresh_requested"); err != nil {
		t.Fatal(err)
	}
	b.say("sam", "#support", "still there?", "")
	if e := wait(t, app.events); e.Type != socketmode.EventTypeEventsAPI {
		t.Fatalf("after the refresh: %v", e)
	}
	if err := b.srv.Disconnect("tired"); err == nil {
		t.Error("an unknown reason was accepted")
	}
}

func TestThePingComesAtOnce(t *testing.T) {
	b := newBench(t)
	sock := b.dial()
	b.say("sam", "#support", "something to read", "")
	sock.next() // frames are only looked at while one reads
	wait(t, sock.pings)
}

func TestDeliveryFaults(t *testing.T) {
	b := newBench(t, func(c *Config) { c.AckTimeout = 300 * time.Millisecond })
	sock := b.dial()
	inject := func(f Fault) {
		t.Helper()
		if err := b.srv.Inject(f); err != nil {
			t.Fatal(err)
		}
	}
	inject(Fault{Fault: FaultDuplicateDelivery, Type: "events_api"})
	b.say("sam", "#support", "twice", "")
	one, two := sock.next(), sock.next()
	if dig(one, "payload", "event_id") != dig(two, "payload", "event_id") || one["envelope_id"] == two["envelope_id"] {
		t.Errorf("duplicates: %v and %v", one, two)
	}
	sock.settle(one)
	sock.settle(two)

	inject(Fault{Fault: FaultLostDelivery})
	b.say("sam", "#support", "lost at first", "")
	if frame := sock.next(); frame["retry_attempt"] != 1.0 {
		t.Errorf("the first attempt arrived: %v", frame)
	} else {
		sock.settle(frame)
	}

	inject(Fault{Fault: FaultLostAck})
	b.say("sam", "#support", "unheard", "")
	sock.ack(sock.next(), nil)
	if frame := sock.next(); frame["retry_attempt"] != 1.0 {
		t.Errorf("the unheard acknowledgement counted: %v", frame)
	} else {
		sock.settle(frame)
	}

	inject(Fault{Fault: FaultLateDelivery, DelayMS: 1})
	b.say("sam", "#support", "late", "")
	if frame := sock.next(); dig(frame, "payload", "event", "text") != "late" {
		t.Errorf("late: %v", frame)
	}
}
