package mcp

import (
	"strings"
	"testing"
	"time"

	"countersign/approvers"
)

func init() {
	// The server "does one thing at a time" answers a call only after a request for the list. It answers the request
	// for the list only after the call has ended.
	scriptedServers["does one thing at a time"] = answering(func(p *scriptedServer, m wire) {
		for wanted := 0; wanted < 2; {
			next, ok := p.next()
			if !ok {
				return
			}
			if next.Method == "tools/list" {
				wanted++
			}
		}
		p.result(m, `{"content":[{"type":"text","text":"done after all"}]}`)
	})
}

// TestReadAgain checks that an unannounced change of a tool is detected even if no tool is called. The change voids
// waiting requests. When the server offers the pinned definition again, the tool can be called.
func TestReadAgain(t *testing.T) {
	s := newDriftingServer([]string{actDefinition})
	l := quick()
	l.fresh, l.again = 100*time.Millisecond, 20*time.Millisecond
	o := newHarnessWith(t, s, l)
	r := o.request(o.ask("srv.act", `{"order":"ORD-1"}`).Request)
	if r.State != approvers.Pending {
		t.Fatalf("it is %s", r.State)
	}
	s.says(false, []string{strings.Replace(actDefinition, "Ships", "Cancels", 1)})
	o.offered()
	o.ok(o.Requests.Reevaluate(t.Context()))
	if r := o.request(r.ID); r.State != approvers.Voided || o.blocked("srv.act") == "" {
		t.Errorf("the request is %s, and the reason why the tool is blocked is %q", r.State, o.blocked("srv.act"))
	}
	s.says(false, []string{actDefinition})
	o.offered()
	if why := o.blocked("srv.act"); why != "" {
		t.Errorf("the definition is as pinned again, but the tool is blocked: %s", why)
	}
}

// TestReadAgainBesideACall checks a server that answers no other request during a call. The client must not end the
// connection to the server.
func TestReadAgainBesideACall(t *testing.T) {
	l := quick()
	l.again, l.list = 20*time.Millisecond, 3*time.Second // the first list must arrive in time, even on a busy machine
	c, o := running(t, l, program(t, "bad", "does one thing at a time"))
	tool := o.tool(t, "bad.act")
	if text, err := call(t, tool, `{}`); err != nil || text != "done after all" {
		t.Errorf("%q, %v", text, err)
	}
	if n := c.Status()[0].Restarts; n != 0 {
		t.Errorf("it was connected again %d times", n)
	}
}
