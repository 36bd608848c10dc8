package transport

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/gorilla/websocket"

	"countersign/internal/testkit"
)

// fakeSlack simulates Slack in Socket Mode, in faked time. A transport is connected to fakeSlack.
type fakeSlack struct {
	t      *testing.T
	mode   *SocketMode
	opened chan *fakeSocket
	stop   func()
	ended  chan error

	mu      sync.Mutex
	refuses error  // the error that Address returns
	asked   int    // how often Address was called
	first   string // the first frame of a new socket; empty: hello
}

// refuse makes Slack answer requests for an address with an error. If the error is nil, Slack answers with an address.
// refuse returns how often Slack was asked since the last call of refuse.
func (s *fakeSlack) refuse(err error) (asked int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	asked, s.asked, s.refuses = s.asked, 0, err
	return asked
}

func (s *fakeSlack) address(context.Context) (string, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.asked++; s.asked > 100 { // a loop without pauses would never end in faked time
		return "", errFinal
	}
	return "ws://slack.test/", s.refuses
}

// begin sets the first frame of new sockets.
func (s *fakeSlack) begin(first string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.first = first
}

func (s *fakeSlack) firstFrame() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return cmp.Or(s.first, `{"type":"hello"}`)
}

// fakeSocket simulates Slack's side of one connection.
type fakeSocket struct {
	conn *websocket.Conn
	acks chan string // the acknowledgements that the bot sends; closed when the connection has ended
}

// inSocketMode runs a test in faked time.
func inSocketMode(t *testing.T, r *recorder, test func(*fakeSlack)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		l := testkit.NewNetwork()
		s := &fakeSlack{t: t, opened: make(chan *fakeSocket, 100), ended: make(chan error, 1)}
		upgrader := websocket.Upgrader{CheckOrigin: func(*http.Request) bool { return true }}
		srv := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			conn, err := upgrader.Upgrade(w, r, nil)
			if err != nil {
				t.Error(err)
				return
			}
			k := &fakeSocket{conn: conn, acks: make(chan string, 100)}
			k.send(s.firstFrame())
			s.opened <- k
			defer close(k.acks)
			for {
				_, raw, err := conn.ReadMessage()
				if err != nil {
					conn.Close()
					return
				}
				k.acks <- string(raw)
			}
		})}
		go srv.Serve(l)
		defer srv.Close()
		s.mode = NewSocketMode(SocketModeOptions{
			Options: options(r),
			Address: s.address,
			Final:   func(err error) bool { return errors.Is(err, errFinal) },
			HTTP:    &http.Client{Transport: &http.Transport{DialContext: l.DialContext}},
		})
		ctx, stop := context.WithCancel(t.Context())
		s.stop = stop
		go func() { s.ended <- s.mode.Run(ctx) }()
		synctest.Wait()
		test(s)
		stop()
		synctest.Wait()
	})
}

var errFinal = errors.New("the token is refused")

// socket returns the next opened connection.
func (s *fakeSlack) socket() *fakeSocket {
	s.t.Helper()
	synctest.Wait()
	select {
	case k := <-s.opened:
		return k
	default:
		s.t.Fatal("no connection was opened")
		return nil
	}
}

// send sends a frame.
func (k *fakeSocket) send(frame string) {
	_ = k.conn.WriteMessage(websocket.TextMessage, []byte(frame))
}

// deliver sends an event, and waits until the transport is idle.
func (s *fakeSlack) deliver(k *fakeSocket, envelope, payload string) {
	k.send(fmt.Sprintf(`{"type":"events_api","envelope_id":%q,"payload":%s}`, envelope, payload))
	synctest.Wait()
}

// acknowledged returns the acknowledgements on a connection since the last call, and whether the connection has ended.
func (k *fakeSocket) acknowledged() (all string, ended bool) {
	synctest.Wait()
	for {
		select {
		case ack, open := <-k.acks:
			if !open {
				return all, true
			}
			all += ack
		default:
			return all, false
		}
	}
}

// A delivery is acknowledged when the handler reports that it is stored. The acknowledgement has the handler's answer,
// and goes to the connection on which the delivery came. If the handler fails, the delivery is not acknowledged.
func TestSocketAcknowledgement(t *testing.T) {
	r := &recorder{
		hold: map[string]chan struct{}{}, fail: map[string]error{`"b bad"`: errors.New("no disk")},
		says: map[string]any{`"a slow"`: "an answer"},
	}
	inSocketMode(t, r, func(s *fakeSlack) {
		one, two := s.socket(), s.socket()
		durable := make(chan struct{})
		r.hold[`"a slow"`] = durable
		s.deliver(one, "E1", `"a slow"`)
		s.deliver(one, "E2", `"b bad"`)
		if acks, _ := one.acknowledged(); acks != "" || r.payloads() != `"a slow" "b bad"` {
			t.Errorf("before anything is durable, acknowledged: %s; handed over: %s", acks, r.payloads())
		}
		close(durable)
		if acks, _ := one.acknowledged(); acks != `{"envelope_id":"E1","payload":"an answer"}` {
			t.Errorf("acknowledged: %s", acks)
		}
		one.send(`{"type":"something new","envelope_id":"E3","payload":"c x"}`)
		one.send(`{"type":"events_api","payload":"c x"}`)
		if acks, _ := one.acknowledged(); acks != "" || len(r.deliveries()) != 2 {
			t.Errorf("frames of no known type: acknowledged: %s; handed over: %s", acks, r.payloads())
		}
		if acks, _ := two.acknowledged(); acks != "" {
			t.Errorf("through the other connection: %s", acks)
		}
	})
}

// An event that could not be stored counts as a gap, because the bot can read missed messages in Slack. An interaction
// that could not be stored does not count: Slack keeps no history of interactions.
func TestGapsAreAboutEvents(t *testing.T) {
	full := errors.New("no disk")
	inSocketMode(t, &recorder{fail: map[string]error{`"a click"`: full, `"a message"`: full}}, func(s *fakeSlack) {
		k, began := s.socket(), s.mode.Listening().Began
		k.send(`{"type":"interactive","envelope_id":"E1","payload":"a click"}`)
		synctest.Wait()
		if n := s.mode.Listening().Began - began; n != 0 {
			t.Errorf("an interaction counts as %d gaps", n)
		}
		s.deliver(k, "E2", `"a message"`)
		if n := s.mode.Listening().Began - began; n != 1 {
			t.Errorf("an event counts as %d gaps", n)
		}
	})
}

// Deliveries of one lane are passed to the handler one after the other, even if they come through different
// connections. Lanes of other queues do not wait for these deliveries. The times of receipt give the order of arrival.
func TestLaneOrder(t *testing.T) {
	r := &recorder{hold: map[string]chan struct{}{}}
	inSocketMode(t, r, func(s *fakeSlack) {
		one, two := s.socket(), s.socket()
		first := make(chan struct{})
		r.hold[`"a 1"`] = first
		s.deliver(one, "E1", `"a 1"`)
		s.deliver(two, "E2", `"a 2"`)
		s.deliver(one, "E3", `"a 3"`)
		s.deliver(one, "E4", `"b 4"`)
		if r.payloads() != `"a 1" "b 4"` {
			t.Errorf("beside a slow one, handed over: %s", r.payloads())
		}
		close(first)
		synctest.Wait()
		if r.payloads() != `"a 1" "b 4" "a 2" "a 3"` {
			t.Errorf("handed over: %s", r.payloads())
		}
		came := r.deliveries()
		for i, before := range []int{0, 2, 3} { // in the order in which they were sent
			after := []int{2, 3, 1}[i]
			if !came[before].ReceivedAt.Before(came[after].ReceivedAt) {
				t.Errorf("%s came at %s, and %s at %s", came[before].Payload, came[before].ReceivedAt, came[after].Payload, came[after].ReceivedAt)
			}
		}
	})
}

// When Slack asks for the replacement of a connection, a new connection is opened immediately. The old connection is
// read until Slack closes it, or for half a minute.
func TestReplacedConnection(t *testing.T) {
	r := &recorder{}
	inSocketMode(t, r, func(s *fakeSlack) {
		old := s.socket()
		s.socket()
		time.Sleep(2 * steady)
		old.send(`{"type":"disconnect","reason":"warning"}`)
		s.socket()
		time.Sleep(farewell - time.Second)
		s.deliver(old, "E1", `"a 1"`)
		if acks, ended := old.acknowledged(); acks != `{"envelope_id":"E1"}` || ended {
			t.Errorf("acknowledged through the old connection: %s; ended: %t", acks, ended)
		}
		time.Sleep(2 * time.Second)
		if _, ended := old.acknowledged(); !ended {
			t.Error("the old connection is never closed")
		}
		if s.mode.Ready() != nil || len(s.opened) > 0 {
			t.Errorf("ready: %v; opened more: %d", s.mode.Ready(), len(s.opened))
		}
	})
}

// If the app has too many connections, Slack refuses a new one with a disconnect in place of hello. A refused
// connection is closed, and the pauses between tries grow. The same is true if Slack asks for the replacement of a
// connection as soon as it opens. Meanwhile, the other connection is read.
func TestRefusedConnection(t *testing.T) {
	for _, first := range []string{`{"type":"disconnect","reason":"too_many_websockets"}`, `{"type":"disconnect","reason":"refresh_requested"}`} {
		inSocketMode(t, &recorder{}, func(s *fakeSlack) {
			old, other := s.socket(), s.socket()
			time.Sleep(2 * steady)
			s.refuse(nil)
			s.begin(first)
			old.send(`{"type":"disconnect","reason":"warning"}`)
			synctest.Wait()
			time.Sleep(10 * time.Second)
			n := s.refuse(nil)
			if n < 6 || n > 8 {
				t.Fatalf("%s: asked for an address %d times in ten seconds", first, n)
			}
			for range n {
				refused := s.socket()
				if _, ended := refused.acknowledged(); !ended && strings.Contains(first, "too_many") {
					t.Errorf("%s: the connection is kept", first)
				}
			}
			s.deliver(other, "E1", `"a 1"`)
			if acks, _ := other.acknowledged(); acks != `{"envelope_id":"E1"}` || s.mode.Ready() != nil {
				t.Errorf("%s: acknowledged: %s; ready: %v", first, acks, s.mode.Ready())
			}
			s.begin("")
			time.Sleep(longestRetryPause)
			s.socket()
			s.refuse(nil)
			time.Sleep(10 * time.Second)
			if n := s.refuse(nil); n > 0 {
				t.Errorf("%s: asked %d times although two connections are up", first, n)
			}
		})
	}
}

// If nothing arrives on a connection, not even pings, the connection is replaced.
func TestSilentConnection(t *testing.T) {
	inSocketMode(t, &recorder{}, func(s *fakeSlack) {
		silent, pinging := s.socket(), s.socket()
		for range 4 {
			time.Sleep(20 * time.Second)
			_ = pinging.conn.WriteControl(websocket.PingMessage, nil, time.Now().Add(time.Second))
		}
		if _, ended := silent.acknowledged(); !ended {
			t.Error("a silent connection is kept")
		}
		if _, ended := pinging.acknowledged(); ended {
			t.Error("a connection with pings is not kept")
		}
		s.socket()
	})
}

// When the transport is stopped, received deliveries are passed to the handler and acknowledged before Run returns.
func TestSocketModeStops(t *testing.T) {
	r := &recorder{hold: map[string]chan struct{}{}}
	inSocketMode(t, r, func(s *fakeSlack) {
		one := s.socket()
		first := make(chan struct{})
		r.hold[`"a 1"`] = first
		s.deliver(one, "E1", `"a 1"`)
		s.deliver(one, "E2", `"a 2"`)
		s.stop()
		synctest.Wait()
		if len(s.ended) > 0 {
			t.Error("it ended although something is still being stored")
		}
		close(first)
		if err := <-s.ended; err != nil {
			t.Error(err)
		}
		if acks, ended := one.acknowledged(); acks != `{"envelope_id":"E1"}{"envelope_id":"E2"}` || !ended {
			t.Errorf("acknowledged: %s; ended: %t", acks, ended)
		}
		if s.mode.Ready() == nil {
			t.Error("it is ready although it has ended")
		}
	})
}

// delayed is an error that says when to try again.
type delayed struct{ error }

func (delayed) After() time.Duration { return 20 * time.Second }

// While Slack gives no address, the pauses between tries grow. Each pause is at least as long as Slack asks. Retry
// makes the transport try immediately. A final error ends Run.
func TestNoAddress(t *testing.T) {
	inSocketMode(t, &recorder{}, func(s *fakeSlack) {
		one, two := s.socket(), s.socket()
		time.Sleep(2 * steady)
		s.refuse(errors.New("Slack is down"))
		one.conn.Close()
		two.conn.Close()
		time.Sleep(10 * time.Second)
		if n := s.refuse(delayed{errors.New("asked too often")}); n < 2*6 || n > 2*8 || s.mode.Ready() == nil {
			t.Errorf("asked %d times in ten seconds; ready: %v", n, s.mode.Ready())
		}
		s.mode.Retry()
		synctest.Wait()
		if n := s.refuse(delayed{errors.New("asked too often")}); n != sockets {
			t.Errorf("asked %d times at once", n)
		}
		time.Sleep(19 * time.Second)
		if n := s.refuse(nil); n > 0 {
			t.Errorf("asked %d times within the delay", n)
		}
		s.mode.Retry()
		s.socket()
		s.socket()
		if s.mode.Ready() != nil {
			t.Error("it is not ready although it is connected")
		}
		s.refuse(fmt.Errorf("no: %w", errFinal))
		s.mode.Retry() // nothing to do for connections that are up
		synctest.Wait()
		if len(s.ended) > 0 {
			t.Fatal("it ended although it is connected")
		}
		time.Sleep(silence + time.Second)
		if err := <-s.ended; !errors.Is(err, errFinal) || !strings.HasPrefix(err.Error(), "no: ") {
			t.Errorf("it ended with %v", err)
		}
	})
}
