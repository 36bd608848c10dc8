package workspace

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/gorilla/websocket"
	"github.com/slack-go/slack"
	"github.com/slack-go/slack/socketmode"

	"countersign/internal/demo/workspace/delivery"
	"countersign/internal/testkit"
)

// raw is a socket that is read without slack-go. The test sees the frames as they arrive.
type raw struct {
	t     testing.TB
	b     *harness
	conn  *websocket.Conn
	pings chan struct{}
}

// open dials a socket's URL as Slack's clients do. If the dial fails, open returns the HTTP status.
func (b *harness) open(url string) (*websocket.Conn, int) {
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

func (b *harness) dial() *raw {
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
	if err := r.conn.SetReadDeadline(time.Now().Add(testkit.Patience)); err != nil {
		r.t.Fatal(err)
	}
	if err := r.conn.ReadJSON(&frame); err != nil {
		r.t.Fatal(err)
	}
	return frame
}

// nextSaying returns the next frame of the message with this text. On a busy machine, an earlier message may come again
// before the workspace has read its acknowledgement. nextSaying ignores such frames: an acknowledgement would use up
// the fault FaultLostAck.
func (r *raw) nextSaying(text string) obj {
	r.t.Helper()
	for {
		frame := r.next()
		if dig(frame, "payload", "event", "text") == text {
			return frame
		}
	}
}

func (r *raw) ack(frame obj, payload any) {
	r.t.Helper()
	if err := r.conn.WriteJSON(obj{"envelope_id": frame["envelope_id"], "payload": payload}); err != nil {
		r.t.Fatal(err)
	}
}

// settle sends an acknowledgement and waits until the workspace has received it.
func (r *raw) settle(frame obj) {
	r.t.Helper()
	_, before := r.b.srv.hub.Delivered()
	r.ack(frame, nil)
	heard := func() bool {
		_, pending := r.b.srv.hub.Delivered()
		return pending < before
	}
	for deadline := time.Now().Add(testkit.Patience); !heard(); runtime.Gosched() {
		if time.Now().After(deadline) {
			r.t.Fatal("an acknowledgement was not received")
		}
	}
}

func quick(c *Config) {
	c.AckTimeout = 30 * time.Millisecond
	c.RetryDelays = []time.Duration{0, 10 * time.Millisecond, 20 * time.Millisecond}
}

// An unacknowledged event is sent four times in total. Each time, it is sent in a new envelope with the same event_id.
func TestUnacknowledgedEventsComeAgain(t *testing.T) {
	b := newHarness(t, quick)
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
	b := newHarness(t)
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

// Events that occur while the app is disconnected are delivered in order when the app connects.
func TestEventsWaitForAnApp(t *testing.T) {
	b := newHarness(t)
	b.say("sam", "#support", "one", "")
	b.say("sam", "#support", "two", "")
	sock := b.dial()
	for _, want := range []string{"one", "two"} {
		if frame := sock.next(); dig(frame, "payload", "event", "text") != want || frame["retry_attempt"] != 0.0 {
			t.Fatalf("got %v, want %s", frame, want)
		}
	}
}

// When a socket breaks, its unacknowledged events are sent through the next socket.
func TestEventsOfABrokenSocketComeAgain(t *testing.T) {
	b := newHarness(t)
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

func (b *harness) postButton(channel string) (ts string) {
	b.t.Helper()
	_, ts, err := b.api.PostMessage(channel, slack.MsgOptionText("card", false), slack.MsgOptionBlocks(
		slack.NewActionBlock("b", slack.NewButtonBlockElement("go", "v1", slack.NewTextBlockObject("plain_text", "Go", false, false)))))
	if err != nil {
		b.t.Fatal(err)
	}
	return ts
}

// A click is sent once. Without an acknowledgement the person gets an error.
func TestClicksAreNotSentAgain(t *testing.T) {
	b := newHarness(t, quick)
	ts := b.postButton("C0001")
	click := obj{"channel": "C0001", "ts": ts, "action_id": "go"}
	if r := b.post("/people/ada/actions", click); r.status != 504 || r.code() != "app_did_not_respond" {
		t.Fatalf("without any app: %v", r)
	}
	sock := b.dial()
	for range 4 { // four attempts to deliver the event of the message; the test acknowledges none
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

// An acknowledgement of 20 KB is silently dropped. An acknowledgement that is one byte shorter is accepted.
func TestBigAcknowledgementsAreDropped(t *testing.T) {
	b := newHarness(t, func(c *Config) { c.AckTimeout = 500 * time.Millisecond })
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
	b := newHarness(t, func(c *Config) { c.Pick = func(n int) int { turn++; return turn % n } })
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
	b := newHarness(t)
	for range 10 {
		b.dial()
	}
	if _, _, err := b.api.StartSocketModeContext(t.Context()); err == nil || err.Error() != "too_many_websockets" {
		t.Fatalf("an eleventh socket: %v", err)
	}
}

func TestATicketOpensOneSocket(t *testing.T) {
	b := newHarness(t)
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

// After a disconnect message, slack-go closes the socket and reconnects. An unknown reason for a disconnect is an
// error.
func TestDisconnectMakesTheAppReconnect(t *testing.T) {
	b := newHarness(t)
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
	b := newHarness(t)
	sock := b.dial()
	b.say("sam", "#support", "something to read", "")
	sock.next() // reads, because the client handles pings only while it reads
	wait(t, sock.pings)
}

func TestDeliveryFaults(t *testing.T) {
	b := newHarness(t, func(c *Config) { c.AckTimeout = 300 * time.Millisecond })
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
	if frame := sock.nextSaying("lost at first"); frame["retry_attempt"] == 0.0 {
		t.Errorf("the first attempt arrived: %v", frame)
	} else {
		sock.settle(frame)
	}

	inject(Fault{Fault: FaultLostAck})
	b.say("sam", "#support", "unheard", "")
	sock.ack(sock.nextSaying("unheard"), nil)
	if frame := sock.nextSaying("unheard"); frame["retry_attempt"] == 0.0 {
		t.Errorf("the lost acknowledgement counted: %v", frame)
	} else {
		sock.settle(frame)
	}

	inject(Fault{Fault: FaultLateDelivery, DelayMS: 1})
	b.say("sam", "#support", "late", "")
	sock.nextSaying("late")
}

// Each attempt to deliver an event may be lost, late or repeated, or its acknowledgement may be lost. An event that is
// lost four times never arrives.
func TestMishaps(t *testing.T) {
	fates := map[string][]delivery.Mishap{
		"late":   {{Late: 30 * time.Millisecond}},
		"twice":  {{Again: 20 * time.Millisecond}},
		"lost":   {{Lost: true}, {Lost: true}, {}},
		"never":  {{Lost: true}, {Lost: true}, {Lost: true}, {Lost: true}},
		"unsaid": {{Deaf: true}, {}},
	}
	times := map[string]int{"late": 1, "twice": 2, "lost": 1, "never": 0, "unsaid": 2, "plain": 1}
	kinds := make(chan string, 100)
	b := newHarness(t, func(c *Config) {
		c.AckTimeout, c.RetryDelays = 100*time.Millisecond, []time.Duration{0, time.Millisecond, 2 * time.Millisecond}
		c.Mishaps = func(a delivery.Attempt) delivery.Mishap {
			kinds <- a.Kind
			for word, fate := range fates {
				if bytes.Contains(a.Payload, []byte(word)) && a.Number < len(fate) {
					return fate[a.Number]
				}
			}
			return delivery.Mishap{}
		}
	})
	got := make(chan string, 100)
	b.connect(func(e socketmode.Event) (bool, any) {
		for word := range times {
			if bytes.Contains(e.Request.Payload, []byte(word)) {
				got <- word
			}
		}
		return true, nil
	})
	total := 0
	for word, n := range times {
		b.say("sam", "C0001", word, "")
		total += n
	}
	seen := map[string]int{}
	for range total {
		seen[wait(t, got)]++
	}
	select {
	case word := <-got:
		t.Errorf("%s came once more", word)
	case <-time.After(300 * time.Millisecond):
	}
	for word, n := range times {
		if seen[word] != n {
			t.Errorf("%s came %d times; want %d", word, seen[word], n)
		}
	}
	if kind := wait(t, kinds); kind != "events_api" {
		t.Errorf("an attempt of kind %q", kind)
	}
}

// testApp is an app without sockets.
type testApp struct {
	events int
	asked  []string
	err    error
}

func (a *testApp) Event(json.RawMessage) { a.events++ }

func (a *testApp) Ask(kind string, _ json.RawMessage) (json.RawMessage, error) {
	a.asked = append(a.asked, kind)
	return nil, a.err
}

// TestApp checks that deliveries go to Config.App, and that the person gets the app's errors.
func TestApp(t *testing.T) {
	app := &testApp{}
	s, err := New(Config{Seed: OpenSeed(), App: app})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	post := func(path, body string) int {
		w := httptest.NewRecorder()
		s.Handler().ServeHTTP(w, httptest.NewRequest(http.MethodPost, path, strings.NewReader(body)))
		return w.Code
	}
	if code := post("/people/sam/messages", `{"channel":"#support","text":"@Countersign hello"}`); code != http.StatusOK || app.events != 2 {
		t.Errorf("a mention: status %d, %d events; want it as a message and as a mention", code, app.events)
	}
	command := `{"channel":"#support","command":"/countersign","text":"help"}`
	if code := post("/people/sam/commands", command); code != http.StatusOK || len(app.asked) != 1 || app.asked[0] != "slash_commands" {
		t.Errorf("a command: status %d, %v", code, app.asked)
	}
	app.err = errors.New("it is down")
	if code := post("/people/sam/commands", command); code != http.StatusGatewayTimeout {
		t.Errorf("a command that nobody answers: status %d", code)
	}
}

// Clicks, messages, updates, reads and saves run concurrently. Each click reaches the app exactly once, every message
// is stored, and timestamps are unique.
func TestACrowd(t *testing.T) {
	b := newHarness(t, func(c *Config) { c.DataFile = filepath.Join(t.TempDir(), "w.json") })
	ts := b.postButton("C0000")
	var mu sync.Mutex
	clicks := map[string]int{}
	done := make(chan struct{})
	const rounds = 20
	people := []string{"ada", "teo", "ingrid", "kenji", "sam", "priya"}
	b.connect(func(e socketmode.Event) (bool, any) {
		if c, ok := e.Data.(slack.InteractionCallback); ok {
			mu.Lock()
			defer mu.Unlock()
			clicks[c.User.Name]++
			total := 0
			for _, n := range clicks {
				total += n
			}
			if total == rounds*len(people) {
				close(done)
			}
		}
		return true, nil
	})
	var crowd sync.WaitGroup
	for _, who := range people {
		crowd.Go(func() {
			for i := range rounds {
				b.must(b.post("/people/"+who+"/actions", obj{"channel": "C0000", "ts": ts, "action_id": "go"}))
				b.say(who, "C0000", fmt.Sprint(who, i), "")
				b.must(b.get("/people/" + who + "/channels/C0000/messages?mark=true"))
			}
		})
	}
	crowd.Go(func() {
		for i := range rounds {
			if _, err := b.api.PublishView("U0001", slack.HomeTabViewRequest{Type: slack.VTHomeTab, Blocks: slack.Blocks{BlockSet: []slack.Block{slack.NewDividerBlock()}}}, ""); err != nil {
				t.Error(err)
			}
			if err := b.api.AddReaction(fmt.Sprintf("r%d", i), slack.NewRefToMessage("C0000", ts)); err != nil {
				t.Error(err)
			}
		}
	})
	crowd.Wait()
	wait(t, done)
	seen := map[any]bool{}
	for _, m := range b.messages("ada", "C0000", "") {
		if seen[dig(m, "ts")] {
			t.Errorf("the ts %v twice", dig(m, "ts"))
		}
		seen[dig(m, "ts")] = true
	}
	if want := rounds*len(people) + 1; len(seen) != want {
		t.Errorf("%d messages, want %d", len(seen), want)
	}
	for who, n := range clicks {
		if n != rounds {
			t.Errorf("%d clicks by %s", n, who)
		}
	}
}
