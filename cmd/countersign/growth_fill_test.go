package main

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"maps"
	"strings"
	"testing"
	"time"

	"countersign/agent"
	"countersign/approvers"
	"countersign/approvers/workflow"
	"countersign/cmd/countersign/policyfile"
	"countersign/store"
)

// original is one conversation with its call, as a workflow wrote it. The test fills stores with copies of this
// conversation.
type original struct {
	conv      store.Conversation
	messages  []store.Message
	turn      approvers.Turn
	call      store.Call
	request   approvers.Request
	execution approvers.Execution
	outbox    []store.OutboxMessage
	shown     map[string][]store.Rendering // by outbox message
	timers    []store.Timer
	audit     []approvers.AuditRecord
	payloads  map[uint64]approvers.AuditPayload
}

// growing is a store that is filled with copies. The ids of the copies increase, because inserts in random order would
// take hours. The measured reads and decisions are in random order.
type growing struct {
	t        *testing.T
	at       func() (store.Store, error) // opens the store
	store    store.Store
	workflow *workflow.Workflow
	policy   *approvers.Policy
	tools    *agent.Registry
	waiting  original
	finished original
	n        int // copies that wait
}

func newGrowing(t *testing.T, policy string, at func() (store.Store, error)) *growing {
	t.Helper()
	g := &growing{t: t, at: at}
	var err error
	if g.policy, g.tools, err = policyfile.Read(policy); err != nil {
		t.Fatal(err)
	}
	g.open()
	if err := g.workflow.Requests.Reevaluate(t.Context()); err != nil { // records the policy, so that serve finds it unchanged
		t.Fatal(err)
	}
	g.waiting, g.finished = g.make("1.0", false), g.make("2.0", true)
	return g
}

func (g *growing) open() {
	g.t.Helper()
	var err error
	if g.store, err = g.at(); err != nil {
		g.t.Fatal(err)
	}
	g.workflow = workflow.New(workflow.Config{Store: g.store, Policy: func() *approvers.Policy { return g.policy }, Tools: g.tools, Log: slog.New(slog.DiscardHandler)})
}

func (g *growing) close() {
	g.t.Helper()
	if err := g.store.Close(); err != nil {
		g.t.Fatal(err)
	}
}

// The method "make" makes a person ask for a refund. If finished is true, the refund is approved and run. Otherwise the
// refund waits.
func (g *growing) make(thread string, finished bool) original {
	g.t.Helper()
	ctx, wf := g.t.Context(), g.workflow
	must := func(err error) {
		g.t.Helper()
		if err != nil {
			g.t.Fatal(err)
		}
	}
	heard, err := wf.Intake.ReceiveMessage(ctx, workflow.IncomingMessage{
		At: time.Now(), Team: "T0001", Thread: thread, TS: thread, Text: "refund ORD-123, it arrived broken", Start: true,
		Who: approvers.Identity{ID: "T0001/U0100", Name: "Sam"}, Channel: approvers.ChannelRef{Channel: "C0001", Name: "support"},
	})
	must(err)
	must(wf.Turns.Propose(ctx, workflow.Proposal{
		Turn: heard.Turn, Authors: []approvers.PersonID{"T0001/U0100"},
		Calls: []workflow.ModelCall{{ID: "c1", Tool: "issue_refund", Args: `{"order_id":"ORD-123","amount":49.99,"currency":"USD","reason":"arrived broken"}`}},
	}))
	o := g.read(heard.Turn)
	card, err := json.Marshal(map[string]string{"text": "Refund of $49.99 for order ORD-123", "blocks": "as many bytes as a small card has " + strings.Repeat("x", 400)})
	must(err)
	for _, s := range o.outbox {
		s.Channel, s.TS = "D"+thread, thread
		must(wf.Outbox.Delivered(ctx, s, workflow.SentMessage{Body: card, Shows: []store.Shown{{Request: o.request.ID, Digest: o.request.Digest, Whole: true}}}))
	}
	if finished {
		_, err := wf.Requests.Decide(ctx, g.approval(o.request))
		must(err)
		_, run, err := wf.Runs.Claim(ctx, o.execution.ID)
		must(err)
		if !run {
			g.t.Fatal("the refund can't be run")
		}
		must(wf.Runs.Finish(ctx, o.execution.ID, true, `{"refunded":"49.99"}`))
		must(wf.Turns.Answer(ctx, heard.Turn, 1, "I refunded $49.99.", nil, 100))
	}
	return g.read(heard.Turn)
}

// approval returns the team lead's click.
func (g *growing) approval(r approvers.Request) workflow.Click {
	return workflow.Click{
		At: time.Now(), Who: approvers.Identity{ID: "T0001/U0002", Name: "Teo"}, Request: r.ID, Kind: approvers.Approve, Digest: r.Digest, Whole: true, Rendering: "r", Channel: "D1", MessageTS: "1",
	}
}

// read reads all records that belong to a turn.
func (g *growing) read(turn string) (o original) {
	g.t.Helper()
	err := g.store.View(g.t.Context(), func(r store.Reader) (err error) {
		o = original{shown: map[string][]store.Rendering{}, payloads: map[uint64]approvers.AuditPayload{}}
		read := func(step func() error) {
			if err == nil {
				err = step()
			}
		}
		read(func() error { o.turn, err = r.Turn(turn); return err })
		read(func() error { o.conv, err = r.Conversation(o.turn.Conversation); return err })
		read(func() error { o.messages, err = r.Messages(o.conv.ID, 0); return err })
		read(func() error {
			calls, err := r.Calls(turn)
			o.call = calls[0]
			return err
		})
		read(func() error { o.request, err = r.Request(o.call.Request); return err })
		read(func() error { o.execution, err = r.Execution(o.call.Execution); return err })
		read(func() error { o.outbox, err = r.OutboxMessagesOf(o.request.ID); return err })
		for _, s := range o.outbox {
			read(func() error { o.shown[s.ID], err = r.Renderings(s.ID); return err })
		}
		for _, kind := range []store.TimerKind{store.TimerExpire, store.TimerEscalate} {
			if timer, err := r.Timer(kind, o.request.ID); err == nil {
				o.timers = append(o.timers, timer)
			}
		}
		read(func() error { o.audit, err = r.Audit(o.request.ID); return err })
		for _, a := range o.audit {
			if p, err := r.AuditPayload(a.Chain, a.Seq); err == nil {
				o.payloads[a.Seq] = p
			}
		}
		return err
	})
	if err != nil {
		g.t.Fatal(err)
	}
	return o
}

// maxFinished limits the number of finished requests. A million waiting requests and a million finished requests would
// not fit on every disk.
const maxFinished = 100_000

// The method "to" fills the store with copies. The store then has n waiting copies. The number of finished copies is n,
// or maxFinished if n is larger.
func (g *growing) to(n int) {
	g.t.Helper()
	const batch = 2000
	for g.n < n {
		from := g.n
		g.n = min(n, g.n+batch)
		err := g.store.Update(context.WithoutCancel(g.t.Context()), func(tx store.Tx) error {
			for i := from; i < g.n; i++ {
				if err := g.waiting.copy(tx, "w", i); err != nil {
					return err
				}
				if i >= maxFinished {
					continue
				}
				if err := g.finished.copy(tx, "f", i); err != nil {
					return err
				}
			}
			return nil
		})
		if err != nil {
			g.t.Fatal(err)
		}
	}
}

// copy writes copy i. The ids of the copy contain the parameter kind and the number i. Each copy is slightly newer than
// the copy before.
func (o original) copy(tx store.Tx, kind string, i int) error {
	name, later := fmt.Sprintf("%s%09d", kind, i), time.Duration(i)*time.Millisecond
	conv, turn, call, r, e := o.conv, o.turn, o.call, o.request, o.execution
	conv.ID, turn.ID, call.ID, r.ID, e.ID = "conv_"+name, "turn_"+name, "call_"+name, "req_"+name, "exec_"+name
	conv.LastAt, r.CreatedAt = conv.LastAt.Add(later), r.CreatedAt.Add(later)
	conv.Version, turn.Version, call.Version, r.Version, e.Version = 0, 0, 0, 0, 0
	conv.Place, conv.Thread = "T0001/C0001/"+name, name
	if conv.Turn != "" {
		conv.Turn = turn.ID
	}
	turn.Conversation, call.Conversation, r.Conversation, e.Conversation = conv.ID, conv.ID, conv.ID, conv.ID
	call.Turn, r.Turn, e.Turn = turn.ID, turn.ID, turn.ID
	r.Call, e.Call = call.ID, call.ID
	call.Request, e.Request = r.ID, r.ID
	call.Execution, r.Execution = e.ID, e.ID
	e.Digest = approvers.Digest(e.ID, e.Tool, e.ToolHash, e.Args)
	r.Digest = e.Digest
	if r.State == approvers.Pending { // so late that no request expires during the measurement
		r.ExpiresAt, r.EscalateAt = r.ExpiresAt.Add(48*time.Hour), r.EscalateAt.Add(48*time.Hour)
	}
	writes := []func() error{
		func() error { return tx.PutConversation(conv) }, func() error { return tx.PutTurn(turn) }, func() error { return tx.PutCall(call) },
		func() error { return tx.PutRequest(r) }, func() error { return tx.PutExecution(e) },
	}
	for _, m := range o.messages {
		m.Conversation, m.Turn = conv.ID, turn.ID
		writes = append(writes, func() error { return tx.PutMessage(m) })
	}
	for _, t := range o.timers {
		t.Ref, t.Due = r.ID, t.Due.Add(48*time.Hour)
		writes = append(writes, func() error { return tx.SetTimer(t) })
	}
	for i, s := range o.outbox {
		shown := o.shown[s.ID]
		s.ID, s.Version, s.TS, s.Ref, s.Request = fmt.Sprintf("s_%s_%d", name, i), 0, name, r.ID, r.ID
		writes = append(writes, func() error { return tx.PutOutboxMessage(s) })
		for _, v := range shown {
			v.OutboxMessage, v.Shows = s.ID, []store.Shown{{Request: r.ID, Digest: r.Digest, Whole: true}}
			writes = append(writes, func() error { return tx.PutRendering(v) })
		}
	}
	var head approvers.AuditRecord
	for _, a := range o.audit {
		p, has := o.payloads[a.Seq]
		a.Chain, a.Facts = r.ID, maps.Clone(a.Facts)
		for fact, is := range map[string]string{"execution": e.ID, "call": call.ID, "conversation": conv.ID, "digest": r.Digest, "requesters": "", "asker": ""} {
			if _, there := a.Facts[fact]; there {
				a.Facts[fact] = is
			}
		}
		a = a.Link(head)
		head = a
		writes = append(writes, func() error {
			if !has {
				return tx.AppendAudit(a, nil)
			}
			p.Chain = a.Chain
			return tx.AppendAudit(a, &p)
		})
	}
	for _, write := range writes {
		if err := write(); err != nil {
			return err
		}
	}
	return nil
}
