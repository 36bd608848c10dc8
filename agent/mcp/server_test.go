package mcp

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"countersign/agent"
	"countersign/config"
)

// TestBackoff checks the delays for a server that keeps failing. The delays double, up to one minute. Each attempt uses
// both handshakes.
func TestBackoff(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := Open(Config{Servers: []config.Server{{Name: "s"}}})
		s := c.servers[0]
		began := time.Now()
		var tries []time.Duration
		s.connect = func(context.Context) (*session, error) {
			if tries = append(tries, time.Since(began)); s.legacy != (len(tries)%2 == 0) {
				t.Errorf("connection %d uses the other handshake", len(tries))
			}
			return nil, errors.New("no")
		}
		ctx, stop := context.WithTimeout(t.Context(), 5*time.Minute)
		defer stop()
		if err := c.Run(ctx); err != nil {
			t.Fatal(err)
		}
		want := []time.Duration{0, 0, 1, 1, 3, 3, 7, 7, 15, 15, 31, 31, 63, 63, 123, 123, 183, 183, 243, 243}
		for i := range want {
			want[i] *= time.Second
		}
		if !slices.Equal(tries, want) {
			t.Errorf("%v, want %v", tries, want)
		}
		if st := c.Status()[0]; st.Connected || st.Problem != "no" {
			t.Errorf("%+v", st)
		}
	})
}

// TestBackoffBeginsAnew checks that after a connection of at least one minute, the first delay is short.
func TestBackoffBeginsAnew(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := Open(Config{Servers: []config.Server{{Name: "s"}}})
		s := c.servers[0]
		began := time.Now()
		var tries []time.Duration
		s.connect = func(ctx context.Context) (*session, error) {
			tries = append(tries, time.Since(began))
			if len(tries) == 8 {
				time.Sleep(2 * time.Minute) // the connection lasts longer than a minute
			}
			return nil, errors.New("no")
		}
		ctx, stop := context.WithTimeout(t.Context(), 131*time.Second)
		defer stop()
		_ = c.Run(ctx)
		want := []time.Duration{0, 0, 1, 1, 3, 3, 7, 7, 128, 128, 130, 130}
		for i := range want {
			want[i] *= time.Second
		}
		if !slices.Equal(tries, want) {
			t.Errorf("%v, want %v", tries, want)
		}
	})
}

// TestReadyWaitsAWhile checks that a call waits for an unconnected server for a limited time.
func TestReadyWaitsAWhile(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := Open(Config{Servers: []config.Server{{Name: "s", Timeout: time.Minute}}})
		c.servers[0].connect = func(context.Context) (*session, error) { return nil, errors.New("it burns") }
		ctx, stop := context.WithCancel(t.Context())
		go c.Run(ctx)
		synctest.Wait()
		tool, err := c.Tool("s", []byte(aTool))
		if err != nil {
			t.Fatal(err)
		}
		began := time.Now()
		_, err = tool.Run(t.Context(), agent.Invocation{})
		if !errors.Is(err, agent.ErrNotRun) || err.Error() != "it was not run: the server is not connected: it burns" || time.Since(began) != usual.ready {
			t.Errorf("%v after %s", err, time.Since(began))
		}
		c.servers[0].Timeout = 6 * time.Second
		began = time.Now()
		if _, err = tool.Run(t.Context(), agent.Invocation{}); !errors.Is(err, agent.ErrNotRun) || time.Since(began) != 3*time.Second {
			t.Errorf("%v after %s, although the timeout is 6 s", err, time.Since(began))
		}
		stop()
	})
}

// TestLegacyHandshake checks that the client tries the handshake of older servers if a server hangs at the newest one.
func TestLegacyHandshake(t *testing.T) {
	l := quick()
	l.start = 3 * time.Second
	s, read := recorded(t, "knows the old handshake alone")
	_, o := running(t, l, s)
	o.tool(t, "bad.act")
	if first := read()[0]; first == "" {
		t.Error("nothing was sent")
	}
}

// TestLegacyHandshakeAtOnce checks a server that exits at the newest handshake. The first attempt to connect also tries
// the older handshake, so the server has listed its tools when it is settled.
func TestLegacyHandshakeAtOnce(t *testing.T) {
	s, read := recorded(t, "exits at the newest handshake")
	c, _ := running(t, quick(), s)
	if err := c.Settled(t.Context()); err != nil {
		t.Fatal(err)
	}
	if st := c.Status()[0]; !st.Connected || st.Tools != 1 || st.Problem != "" {
		t.Errorf("%+v", st)
	}
	if first := read()[0]; !strings.Contains(first, "server/discover") {
		t.Errorf("the first message is %s", first)
	}
}

// TestTooManyCalls checks that the number of concurrent calls of a server is limited.
func TestTooManyCalls(t *testing.T) {
	l := quick()
	l.calls = 1
	s, read := recorded(t, "hangs at a call")
	_, o := running(t, l, s)
	tool := o.tool(t, "bad.act")
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_, _ = tool.Run(ctx, agent.Invocation{Args: []byte(`{}`)})
	}()
	recordedLine(t, read, `"tools/call"`)
	if _, err := call(t, tool, `{}`); !errors.Is(err, agent.ErrNotRun) || err.Error() != "it was not run: the server bad has 1 calls under way already" {
		t.Errorf("%v", err)
	}
	cancel()
	<-ended
}

// TestToolOfNobody checks that Tool returns an error for a server that the policy does not name, and for an invalid
// definition of a tool.
func TestToolOfNobody(t *testing.T) {
	c := Open(Config{Servers: []config.Server{{Name: "s"}}})
	if _, err := c.Tool("other", []byte(aTool)); !errors.Is(err, ErrServer) {
		t.Errorf("%v", err)
	}
	for _, raw := range []string{``, `1`, `{}`, `{"name":""}`, `{"name":"a","name":"b"}`, `{"name":"a","outputSchema":1}`, `{"name":"a","outputSchema":{"type":1}}`, `{"name":"a","outputSchema":{"$ref":"file:///etc/passwd"}}`} {
		if _, err := c.Tool("s", []byte(raw)); !errors.Is(err, ErrDefinition) {
			t.Errorf("%s: %v", raw, err)
		}
	}
}

// TestSettled checks that Settled returns when the caller's context ends.
func TestSettled(t *testing.T) {
	c := Open(Config{Servers: []config.Server{{Name: "s"}}})
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := c.Settled(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("%v", err)
	}
}
