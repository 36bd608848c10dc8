package workflow_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"countersign/approvers"
	"countersign/approvers/workflow"
	"countersign/store"
)

// act is an action of a person. A delivery carries the act as its payload.
type act struct {
	Who    approvers.Identity
	Say    string
	Click  approvers.DecisionKind
	Report workflow.Report
	Away   time.Duration // how long the person says that they are away; Other stands in
	Allow  int
	Remark approvers.RemarkKind
	HandOn bool // hand the request on to Other
	Take   bool // withdraw the request
	Other  approvers.Identity
	Args   string
	Ref    string
	Digest string
}

func (w *environment) handle(ctx context.Context, t store.Timer) error {
	row, err := w.Views.Inbox(ctx, t.Ref)
	w.ok(err)
	var a act
	w.ok(json.Unmarshal(row.Payload, &a))
	c := workflow.Click{
		Inbox: row.ID, At: row.ReceivedAt, Who: a.Who, Request: a.Ref, Execution: a.Ref, Kind: a.Click, Reason: "because", Digest: a.Digest, Whole: true,
		Typed: true, Args: json.RawMessage(a.Args),
	}
	var denied *approvers.Denied
	switch {
	case a.Say != "":
		_, err = w.Intake.ReceiveMessage(ctx, workflow.IncomingMessage{
			Inbox: row.ID, At: row.ReceivedAt, Team: "T0001", Thread: "100.1", TS: row.ID, Who: a.Who, Text: a.Say, Start: true,
			Channel: approvers.ChannelRef{Channel: "C0001", Name: "support"},
		})
	case a.Away > 0:
		_, err = w.People.SetAway(ctx, workflow.Departure{Inbox: row.ID, Who: a.Who, Until: row.ReceivedAt.Add(a.Away), Delegate: &a.Other})
	case a.Allow > 0:
		_, err = w.Grants.Give(ctx, c, approvers.Allowance{Uses: a.Allow, Within: time.Hour})
	case a.Report != "":
		err = w.Runs.Report(ctx, c, a.Report)
	case a.Remark == approvers.Answer:
		_, err = w.Requests.Reply(ctx, c, 0)
	case a.Remark != "":
		_, err = w.Requests.Say(ctx, c, a.Remark)
	case a.HandOn:
		_, err = w.Requests.HandOn(ctx, c, a.Other)
	case a.Take:
		_, err = w.Requests.Withdraw(ctx, c)
	default:
		_, err = w.Requests.Decide(ctx, c)
	}
	if errors.As(err, &denied) {
		return nil // the bot tells the person that the action was denied
	}
	return err
}

// think acts as the model. In the first step, think requests the calls of the script. In the last step, think answers.
func (w *environment) think(ctx context.Context, t store.Timer) error {
	b, err := w.Turns.Begin(ctx, t.Ref)
	if err != nil {
		return err
	}
	w.reach(modelAnswered)
	if b.Turn.Step == 0 {
		return w.Turns.Propose(ctx, workflow.Proposal{Turn: t.Ref, Step: 0, Text: "Let me see.", Calls: calls(w.script...), Authors: []approvers.PersonID{alice.ID}})
	}
	if b.Turn.Step == 1 && len(w.then) > 0 {
		return w.Turns.Propose(ctx, workflow.Proposal{Turn: t.Ref, Step: 1, Text: "And now the rest.", Calls: calls(w.then...), Authors: []approvers.PersonID{alice.ID}})
	}
	return w.Turns.Answer(ctx, t.Ref, b.Turn.Step, "Done.", nil, 1)
}

func (w *environment) runTool(ctx context.Context, t store.Timer) error {
	e, run, err := w.Runs.Claim(ctx, t.Ref)
	if err != nil || !run {
		return err
	}
	w.reach(notCalled)
	w.calls[e.ID]++
	w.reach(notActed)
	if e.Effect != approvers.Idempotent || w.acts[e.ID] == 0 {
		w.acts[e.ID]++
	}
	w.reach(notAnswered)
	w.reach(notRecorded)
	return w.Runs.Finish(ctx, e.ID, true, "done")
}

func (w *environment) showAt(ctx context.Context, t store.Timer) error {
	s, err := w.Views.Message(ctx, t.Ref)
	if err != nil {
		return err
	}
	if role, ok := strings.CutPrefix(s.Message.To, "role:"); ok {
		r, _ := s.Policy.Role(role)
		var users []string
		for _, m := range r.Members {
			users = append(users, m.Value)
		}
		return w.Outbox.Expand(ctx, t.Ref, persons(users...))
	}
	w.reach(notPosted)
	p := w.posts[s.Message.ID] // by the id of the outbox message, the bot also finds a post that it did not record
	p.kind, p.ref, p.posts = s.Message.Kind, s.Message.Ref, p.posts+1
	p.shown = workflow.SentMessage{Body: fmt.Appendf(nil, `{"n":%d}`, p.posts)}
	if s.Execution != nil {
		p.shown.Shows = []store.Shown{{Request: s.Execution.Request, Digest: s.Execution.Digest, Whole: true}}
	}
	w.posts[s.Message.ID] = p
	w.reach(notShown)
	s.Message.Channel, s.Message.TS = "C", s.Message.ID
	return w.Outbox.Delivered(ctx, s.Message, p.shown)
}

// w.people performs the next action of a person on the messages that Slack shows. w.people returns false if no person
// has an action left.
func (w *environment) people() bool {
	if w.silent {
		return false
	}
	var shown []string
	for id := range w.posts {
		shown = append(shown, id)
	}
	slices.SortFunc(shown, func(a, b string) int { return strings.Compare(w.posts[a].ref+a, w.posts[b].ref+b) })
	for _, id := range shown {
		p := w.posts[id]
		if w.acted[id] || (p.kind != store.OutboxCard && p.kind != store.OutboxUnknown) {
			continue
		}
		if p.kind == store.OutboxUnknown {
			w.acted[id] = true
			if w.muted {
				continue
			}
			what := workflow.DidNot
			if w.acts[p.ref] > 0 { // the person checks in the shop whether the tool acted
				what = workflow.Happened
			}
			w.slack(act{Who: alice, Report: what, Ref: p.ref})
			return true
		}
		a := act{Who: lead, Click: approvers.Approve, Allow: w.allow}
		switch {
		case len(w.aside) > 0:
			a, w.aside = w.aside[0], w.aside[1:]
		case w.request(p.ref).Tool == "cancel_account":
			a = act{Who: fin1, Click: approvers.Reject}
			w.acted[id] = true
		default:
			w.allow = 0
			w.acted[id] = true
		}
		a.Ref, a.Digest = p.ref, p.shown.Shows[0].Digest
		w.slack(a)
		return true
	}
	return false
}
