package workspace

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/gorilla/websocket"
	"github.com/slack-go/slack"
	"github.com/slack-go/slack/socketmode"

	"countersign/internal/demo/workspace/delivery"
)

// raw is a socket that is read without slack-go. The test sees the frames as they arrive.
type raw struct {
	t      testing.TB
	conn   *websocket.Conn
	frames chan obj // closed when the socket has ended
	pings  chan struct{}
}

// open dials a socket's URL as Slack's clients do. If the dial fails, open returns the HTTP status.
func (b *harness) open(url string) (*websocket.Conn, int) {
	b.t.Helper()
	conn, resp, err := b.websockets().Dial(url, http.Header{"Origin": {"https://api.slack.com"}})
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
	resp, err := b.http.Client().Do(req)
	if err != nil {
		b.t.Fatal(err)
	}
	defer resp.Body.Close()
	var opened struct{ URL string }
	if err := json.NewDecoder(resp.Body).Decode(&opened); err != nil {
		b.t.Fatal(err)
	}
	conn, _ := b.open(opened.URL)
	r := &raw{t: b.t, conn: conn, frames: make(chan obj, 1000), pings: make(chan struct{}, 1000)}
	conn.SetPingHandler(func(string) error { r.pings <- struct{}{}; return nil })
	go func() {
		defer close(r.frames)
		for {
			var frame obj
			if conn.ReadJSON(&frame) != nil {
				return
			}
			r.frames <- frame
		}
	}()
	if hello := r.next(); hello["type"] != "hello" || dig(hello, "connection_info", "app_id") != "A0001" {
		b.t.Fatalf("the first frame is %v", hello)
	}
	return r
}

// next returns the next frame.
func (r *raw) next() obj {
	r.t.Helper()
	frame := wait(r.t, r.frames)
	if frame == nil {
		r.t.Fatal("the socket has ended")
	}
	return frame
}

// The method "nothing" checks that no frame has come since the last call of next.
func (r *raw) nothing() {
	r.t.Helper()
	synctest.Wait()
	select {
	case frame := <-r.frames:
		r.t.Errorf("one more frame: %v", frame)
	default:
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
	r.ack(frame, nil)
	synctest.Wait()
}

// An unacknowledged event is sent four times in total. Each time, it is sent in a new envelope with the same event_id.
// An attempt ends after three seconds. The next attempt follows immediately, then after one minute, and then after five
// minutes.
func TestUnacknowledgedEventsComeAgain(t *testing.T) {
	inFakedTime(t, nil, func(t *testing.T, b *harness) {
		sock := b.dial()
		b.say("sam", "#support", "hello", "")
		seen := map[any]bool{}
		var event any
		for attempt, after := range []time.Duration{0, 3 * time.Second, 3*time.Second + time.Minute, 3*time.Second + 5*time.Minute} {
			if attempt > 0 {
				time.Sleep(after - time.Nanosecond)
				sock.nothing()
				time.Sleep(time.Nanosecond)
				synctest.Wait()
			}
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
		time.Sleep(time.Hour)
		sock.nothing()
		b.say("sam", "#support", "and then", "")
		if frame := sock.next(); frame["retry_attempt"] != 0.0 || dig(frame, "payload", "event", "text") != "and then" {
			t.Fatalf("the next event: %v", frame)
		}
	})
}

func TestAcknowledgedEventsDontComeAgain(t *testing.T) {
	inFakedTime(t, nil, func(t *testing.T, b *harness) {
		sock := b.dial()
		b.say("sam", "#support", "one", "")
		sock.settle(sock.next())
		if _, pending := b.srv.hub.Delivered(); pending != 0 {
			t.Errorf("%d deliveries are still pending", pending)
		}
		time.Sleep(time.Hour)
		sock.nothing()
	})
}

// Events that occur while the app is disconnected are delivered in order when the app connects.
func TestEventsWaitForAnApp(t *testing.T) {
	inFakedTime(t, nil, func(t *testing.T, b *harness) {
		b.say("sam", "#support", "one", "")
		b.say("sam", "#support", "two", "")
		sock := b.dial()
		for _, want := range []string{"one", "two"} {
			if frame := sock.next(); dig(frame, "payload", "event", "text") != want || frame["retry_attempt"] != 0.0 {
				t.Fatalf("got %v, want %s", frame, want)
			}
		}
	})
}

// When a socket breaks, its unacknowledged events are sent through the next socket.
func TestEventsOfABrokenSocketComeAgain(t *testing.T) {
	inFakedTime(t, nil, func(t *testing.T, b *harness) {
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
	})
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
	inFakedTime(t, nil, func(t *testing.T, b *harness) {
		ts := b.postButton("C0001")
		click := obj{"channel": "C0001", "ts": ts, "action_id": "go"}
		if r := b.post("/people/ada/actions", click); r.status != 504 || r.code() != "app_did_not_respond" {
			t.Fatalf("without any app: %v", r)
		}
		sock := b.dial()
		sock.settle(sock.next()) // the event of the message
		began := time.Now()
		if r := b.post("/people/ada/actions", click); r.status != 504 || r.code() != "app_did_not_respond" || time.Since(began) != 3*time.Second {
			t.Fatalf("without an acknowledgement: %v after %s", r, time.Since(began))
		}
		if frame := sock.next(); frame["type"] != "interactive" || frame["accepts_response_payload"] != true || frame["retry_attempt"] != nil {
			t.Fatalf("the click: %v", frame)
		}
		time.Sleep(time.Hour)
		sock.nothing()
	})
}

// An acknowledgement of 20 KB is silently dropped. An acknowledgement that is one byte shorter is accepted.
func TestBigAcknowledgementsAreDropped(t *testing.T) {
	inFakedTime(t, nil, func(t *testing.T, b *harness) {
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
	})
}

func TestEnvelopesGoToAnySocket(t *testing.T) {
	turn := 0
	inFakedTime(t, func(c *Config) { c.Pick = func(n int) int { turn++; return turn % n } }, func(t *testing.T, b *harness) {
		one, two := b.dial(), b.dial()
		b.say("sam", "#support", "one", "")
		b.say("sam", "#support", "two", "")
		if frame := two.next(); dig(frame, "payload", "event", "text") != "one" {
			t.Errorf("second socket: %v", frame)
		}
		if frame := one.next(); dig(frame, "payload", "event", "text") != "two" {
			t.Errorf("first socket: %v", frame)
		}
	})
}

func TestTenSocketsAndNoMore(t *testing.T) {
	inFakedTime(t, nil, func(t *testing.T, b *harness) {
		for range 10 {
			b.dial()
		}
		_, url, err := b.api.StartSocketModeContext(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		conn, _ := b.open(url)
		var frame obj
		if err := conn.ReadJSON(&frame); err != nil || frame["type"] != "disconnect" || frame["reason"] != "too_many_websockets" {
			t.Errorf("the first frame of an eleventh socket: %v, %v", frame, err)
		}
		if err := conn.ReadJSON(&frame); !websocket.IsCloseError(err, websocket.CloseNormalClosure) {
			t.Errorf("after the refusal: %v", err)
		}
	})
}

func TestATicketOpensOneSocket(t *testing.T) {
	inFakedTime(t, nil, func(t *testing.T, b *harness) {
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
	})
}

// After a disconnect message, slack-go closes the socket and reconnects. An unknown reason for a disconnect is an
// error.
func TestDisconnectMakesTheAppReconnect(t *testing.T) {
	inFakedTime(t, nil, func(t *testing.T, b *harness) {
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
	})
}

// After a disconnect message, the workspace ends the socket: ten seconds after a warning, and otherwise immediately.
func TestDisconnectEndsTheSocket(t *testing.T) {
	for reason, after := range map[string]time.Duration{"refresh_requested": 0, "link_disabled": 0, "warning": 10 * time.Second} {
		inFakedTime(t, nil, func(t *testing.T, b *harness) {
			sock := b.dial()
			began := time.Now()
			if err := b.srv.Disconnect(reason); err != nil {
				t.Fatal(err)
			}
			if frame := sock.next(); frame["type"] != "disconnect" || frame["reason"] != reason {
				t.Errorf("%s: %v", reason, frame)
			}
			if frame := wait(t, sock.frames); frame != nil || time.Since(began) != after {
				t.Errorf("%s: %v after %s; want the end after %s", reason, frame, time.Since(began), after)
			}
		})
	}
}

// A socket is pinged immediately, and then every ten seconds.
func TestThePingComesAtOnce(t *testing.T) {
	inFakedTime(t, nil, func(t *testing.T, b *harness) {
		sock := b.dial()
		for _, want := range []int{1, 2} {
			synctest.Wait()
			if got := len(sock.pings); got != want {
				t.Errorf("%d pings; want %d", got, want)
			}
			time.Sleep(10 * time.Second)
		}
	})
}

func TestDeliveryFaults(t *testing.T) {
	inFakedTime(t, nil, func(t *testing.T, b *harness) {
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
		frame := sock.next()
		if frame["retry_attempt"] != 1.0 {
			t.Errorf("the first attempt arrived: %v", frame)
		}
		sock.settle(frame)

		inject(Fault{Fault: FaultLostAck})
		b.say("sam", "#support", "unheard", "")
		sock.settle(sock.next())
		frame = sock.next()
		if frame["retry_attempt"] != 1.0 || dig(frame, "payload", "event", "text") != "unheard" {
			t.Errorf("the lost acknowledgement counted: %v", frame)
		}
		sock.settle(frame)

		inject(Fault{Fault: FaultLateDelivery, DelayMS: 5000})
		began := time.Now()
		b.say("sam", "#support", "late", "")
		sock.settle(sock.next())
		if late := time.Since(began); late != 5*time.Second {
			t.Errorf("the late delivery came after %s", late)
		}
		time.Sleep(time.Hour)
		sock.nothing()
	})
}

// Each attempt to deliver an event may be lost, late or repeated, or its acknowledgement may be lost. An event that is
// lost four times never arrives.
func TestMishaps(t *testing.T) {
	fates := map[string][]delivery.Mishap{
		"late":   {{Late: 10 * time.Second}},
		"twice":  {{Again: time.Second}},
		"lost":   {{Lost: true}, {Lost: true}, {}},
		"never":  {{Lost: true}, {Lost: true}, {Lost: true}, {Lost: true}},
		"unsaid": {{Deaf: true}, {}},
	}
	times := map[string][]time.Duration{ // when the app receives each event
		"plain": {0}, "late": {10 * time.Second}, "twice": {0, time.Second}, "lost": {time.Minute}, "never": nil, "unsaid": {0, 3 * time.Second},
	}
	mishaps := func(c *Config) {
		c.Mishaps = func(a delivery.Attempt) delivery.Mishap {
			if a.Kind != "events_api" {
				t.Errorf("an attempt of kind %q", a.Kind)
			}
			for word, fate := range fates {
				if bytes.Contains(a.Payload, []byte(word)) && a.Number < len(fate) {
					return fate[a.Number]
				}
			}
			return delivery.Mishap{}
		}
	}
	inFakedTime(t, mishaps, func(t *testing.T, b *harness) {
		var mu sync.Mutex
		got := map[string][]time.Duration{}
		began := time.Now()
		b.connect(func(e socketmode.Event) (bool, any) {
			mu.Lock()
			defer mu.Unlock()
			for word := range times {
				if bytes.Contains(e.Request.Payload, []byte(word)) {
					got[word] = append(got[word], time.Since(began))
				}
			}
			return true, nil
		})
		for word := range times {
			b.say("sam", "C0001", word, "")
		}
		time.Sleep(time.Hour)
		synctest.Wait()
		mu.Lock()
		defer mu.Unlock()
		for word, want := range times {
			if !slices.Equal(got[word], want) {
				t.Errorf("%s came after %v; want %v", word, got[word], want)
			}
		}
	})
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
	inFakedTime(t, func(c *Config) { c.DataFile = filepath.Join(t.TempDir(), "w.json") }, func(t *testing.T, b *harness) {
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
	})
}
