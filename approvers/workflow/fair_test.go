package workflow_test

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"countersign/approvers"
	"countersign/approvers/workflow"
	"countersign/approvers/workflow/settings"
	"countersign/store"
	"countersign/store/jobs"
)

// The function flooding changes a policy so that each client may have many waiting requests.
func flooding(p *approvers.Policy) {
	withClients(p)
	for i := range p.Clients {
		p.Clients[i].MaxPending = 100
	}
}

// h.floods makes a client propose n calls, and returns the ids of their requests.
func (h *harness) floods(c approvers.Client, n int) (ids []string) {
	h.t.Helper()
	for range n {
		key := h.id("flood")
		ids = append(ids, h.callerAsks(callerCall(key, fmt.Sprintf(`issue_refund {"amount": 1, "note": %q}`, key), func(p *workflow.CallerCall) { p.Client = c })))
	}
	return ids
}

// In a card queue, requesters take turns. The next card belongs to the requester with the fewest open cards. If several
// requesters have equally few open cards, the next card belongs to the requester whose last card was opened first.
func TestLineIsFair(t *testing.T) {
	h := newHarness(t)
	h.policy.Store(policy("policy-1", flooding, func(p *approvers.Policy) { p.Caps.Approver = 3 }))
	flood := h.floods(ci, 90)
	mine, bobs := h.asked(2), h.floods(other, 1)
	left := func() (open []string) {
		t.Helper()
		for _, c := range h.lineAt("role:team-lead").Open {
			open = append(open, c.Requests...)
		}
		return open
	}
	want := func(ids ...string) {
		t.Helper()
		if got := left(); !slices.Equal(got, ids) {
			t.Fatalf("open are %v, want %v", got, ids)
		}
	}
	want(flood[:3]...)
	h.reject(lead, flood[0])
	want(flood[1], flood[2], mine[0].ID)
	h.reject(lead, flood[1])
	want(flood[2], mine[0].ID, bobs[0])
	h.reject(lead, bobs[0])
	want(flood[2], mine[0].ID, flood[3]) // each requester has one open card, and ci's card was opened before Alice's
	h.reject(lead, mine[0].ID)
	want(flood[2], flood[3], mine[1].ID)
	h.reject(lead, flood[2])
	h.reject(lead, flood[3])
	want(mine[1].ID, flood[4], flood[5])
	h.reject(lead, mine[1].ID)
	want(flood[4:7]...)

	// Cards of an older version of Countersign have no requester. These cards keep their order.
	h.ok(h.store.Update(h.ctx(), func(tx store.Tx) error {
		l, s, err := settings.ReadCardQueue(tx, "role:team-lead")
		if err != nil {
			return err
		}
		for _, cards := range [][]settings.QueuedCard{l.Open, l.Held} {
			for i := range cards {
				cards[i].Requester = ""
			}
		}
		l.Turns = nil
		if s.Value, err = json.Marshal(l); err != nil {
			return err
		}
		return tx.PutSetting(s)
	}))
	late := h.floods(other, 1)
	h.reject(lead, flood[4])
	want(flood[5], flood[6], late[0])
	h.reject(lead, late[0])
	want(flood[5], flood[6], flood[7])
}

// The cap is one open card. Two clients with many requests and a person with one request take turns.
func TestLineOfOneCardIsFair(t *testing.T) {
	h := newHarness(t)
	h.policy.Store(policy("policy-1", flooding, func(p *approvers.Policy) { p.Caps.Approver = 1 }))
	a, b := h.floods(ci, 20), h.floods(other, 20)
	alices := h.asked(1)
	for _, id := range []string{a[0], b[0], alices[0].ID, a[1], b[1], a[2], b[2], a[3]} {
		if open, _ := h.lineAt("role:team-lead").IDs(); !slices.Equal(open, []string{id}) {
			t.Fatalf("open is %v, want %s", open, id)
		}
		h.reject(lead, id)
	}
}

// Cards for the same approver are posted one per second. While 90 cards of one client wait, the card of another
// requester is posted after at most one of these cards. A restart does not change this order.
func TestFloodDelaysNobodyElse(t *testing.T) {
	inFakedTime(t, func(t *testing.T, w *workingHarness) {
		w.policy.Store(policy("policy-1", flooding))
		var posts log
		names := map[string]string{}
		show := func(ctx context.Context, timer store.Timer) error {
			vm, err := w.Views.Message(ctx, timer.Ref)
			if err != nil {
				return err
			}
			if strings.HasPrefix(vm.Message.To, store.ToRole) {
				return w.Outbox.Expand(ctx, timer.Ref, persons("U0002"))
			}
			<-time.After(time.Second)
			posts.add("%s", vm.Message.Request)
			s := vm.Message
			s.Channel, s.TS = "D0002", timer.Ref
			return w.Outbox.Delivered(context.WithoutCancel(ctx), s, workflow.SentMessage{Body: []byte("card")})
		}
		works := map[store.TimerKind]jobs.Worker{store.TimerShow: {Concurrency: 8, Yields: true, Flow: w.Outbox.Flow, Handle: show}}
		name := func(what string, ids ...string) {
			for i, id := range ids {
				names[id] = fmt.Sprint(what, i)
			}
		}
		w.work(works)
		var flood []string
		for range 90 {
			flood = append(flood, w.floods(ci, 1)...)
			w.pass(time.Millisecond) // so that the cards have an order
		}
		name("ci", flood...)
		w.pass(9500 * time.Millisecond)
		name("other", w.floods(other, 1)...)
		name("alice", w.asked(1)[0].ID)
		w.pass(3 * time.Second)
		if err := w.stop(); err != nil {
			t.Fatal(err)
		}
		name("late", w.floods(other, 2)...)
		w.work(works)
		w.pass(100 * time.Second)
		got := strings.Fields(posts.String())
		for i, id := range got {
			got[i] = names[id]
		}
		if len(got) != 94 {
			t.Errorf("%d cards were posted", len(got))
		}
		for who, most := range map[string]int{"other0": 11, "alice0": 12, "late0": 17, "late1": 17} {
			if at := slices.Index(got, who); at < 0 || at > most {
				t.Errorf("the card %s was posted as number %d of %v", who, at, got)
			}
		}
		cis := slices.DeleteFunc(got, func(name string) bool { return !strings.HasPrefix(name, "ci") })
		for i, name := range cis {
			if name != fmt.Sprint("ci", i) {
				t.Errorf("the client's cards were posted as %v", cis)
				break
			}
		}
	})
}
