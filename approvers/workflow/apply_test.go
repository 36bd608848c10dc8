package workflow_test

import (
	"context"
	"encoding/json"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"countersign/approvers"
	"countersign/approvers/workflow"
	"countersign/store"
)

// consequences are the rows that apply writes because of one event. Every change of a request also sets the request's
// timers and updates its outbox messages. consequences does not list these rows, because every event causes them.
type consequences struct {
	timers   string // "+kind": a timer of this kind is set; "-kind": it is cleared
	audit    string // kinds of the request's new records
	messages string // new messages, as "kind address"
	cards    bool   // a lost card is posted again
	turn     string // the change of the call
	counted  string // the events reported to the metrics
	doubt    bool   // the streak of unchanged approvals ends
}

// TestWhatFollowsFromAnEvent lists, for each kind of event, the rows that apply writes because of this event. The
// request is at the first of its two stages. It waits for the team lead, who reads cards by direct message.
func TestWhatFollowsFromAnEvent(t *testing.T) {
	first := approvers.Stage{Approver: "team-lead", Quorum: 1}
	other := approvers.Stage{Approver: "support-agent", Quorum: 1}
	keep := func(*approvers.Request) {}
	closed := func(s approvers.State) func(*approvers.Request) {
		return func(r *approvers.Request) { r.State, r.ClosedAt, r.Reason = s, r.CreatedAt, "a reason" }
	}
	making := func(r *approvers.Request) {
		r.ToolPreview = &approvers.ToolPreview{By: "refund_preview", State: approvers.ToolPreviewPending, Digest: r.Digest}
	}
	tests := map[string]struct {
		event  approvers.Event
		change func(*approvers.Request)
		want   consequences
	}{
		"RequestOpened":            {approvers.RequestOpened{}, keep, consequences{counted: "asked"}},
		"RequestOpened, previewed": {approvers.RequestOpened{}, making, consequences{timers: "+preview", counted: "asked"}},
		"DecisionMade": {
			approvers.DecisionMade{Decision: approvers.Decision{Kind: approvers.Approve, By: lead.ID}}, keep,
			consequences{timers: "+muster", counted: "approve"},
		},
		"DecisionMade, a rejection": {
			approvers.DecisionMade{Decision: approvers.Decision{Kind: approvers.Reject, By: lead.ID}}, keep,
			consequences{timers: "+muster", counted: "reject", doubt: true},
		},
		"DecisionMade, break glass": {
			approvers.DecisionMade{Decision: approvers.Decision{Kind: approvers.Approve, By: lead.ID, BreakGlass: true}}, keep,
			consequences{timers: "+muster", counted: "approve", messages: "notice role:finance-director, notice role:team-lead"},
		},
		"ArgsEdited": {
			approvers.ArgsEdited{}, func(r *approvers.Request) { r.Execution, r.Args = "exec_new", json.RawMessage(`{"amount":601}`) },
			consequences{turn: "another execution", cards: true, doubt: true},
		},
		"ArgsEdited, previewed": {
			approvers.ArgsEdited{}, func(r *approvers.Request) { making(r); r.Execution = "exec_new" },
			consequences{timers: "+preview", turn: "another execution", cards: true, doubt: true},
		},
		"DecisionsFell":   {approvers.DecisionsFell{Of: []approvers.PersonID{fin1.ID, fin2.ID}}, keep, consequences{messages: "notice user:U0003, notice user:U0004"}},
		"PlanChanged":     {approvers.PlanChanged{}, keep, consequences{audit: "replanned"}},
		"LeadsLeft":       {approvers.LeadsLeft{}, keep, consequences{timers: "+muster"}},
		"StageStarted":    {approvers.StageStarted{Why: approvers.StageReplaced, After: first}, keep, consequences{timers: "+muster"}},
		"EscalationEnded": {approvers.EscalationEnded{}, func(r *approvers.Request) { r.EscalateAt = time.Time{} }, consequences{timers: "-escalate"}},
		"StageStarted, the next one": {
			approvers.StageStarted{Why: approvers.StagePassed, After: first, Stage: 1}, func(r *approvers.Request) { r.Stage = 1 },
			consequences{timers: "+muster", audit: "advanced", messages: "card role:finance-director", cards: true},
		},
		"StageStarted, for others": {
			approvers.StageStarted{Why: approvers.StageReplaced, After: first}, func(r *approvers.Request) { r.Plan.Stages[0] = other },
			consequences{timers: "+muster", messages: "card channel:#support-approvals", cards: true},
		},
		"StageStarted, after an edit": {
			approvers.StageStarted{Why: approvers.StageEdited, After: first}, keep,
			consequences{timers: "+muster", audit: "advanced"},
		},
		"RequestUnbundled": {approvers.RequestUnbundled{}, keep, consequences{cards: true}},
		"RequestApproved": {
			approvers.RequestApproved{}, func(r *approvers.Request) { r.State, r.RunBy = approvers.Approved, r.ExpiresAt },
			consequences{timers: "+run -escalate", audit: "approved", counted: "approved"},
		},
		"RequestReopened": {approvers.RequestReopened{}, keep, consequences{audit: "reopened", cards: true}},
		"RequestConsumed": {approvers.RequestConsumed{}, closed(approvers.Consumed), consequences{timers: "-escalate -expire", counted: "consumed"}},
		"RequestClosed": {
			approvers.RequestClosed{State: approvers.Expired}, closed(approvers.Expired),
			consequences{timers: "-escalate -expire", audit: "closed returned", counted: "expired", turn: "expired"},
		},
		"RequestClosed, revoked": {
			approvers.RequestClosed{State: approvers.Revoked}, closed(approvers.Revoked),
			consequences{timers: "-escalate -expire", audit: "closed returned", counted: "revoked", turn: "revoked", doubt: true},
		},
		"Escalated": {
			approvers.Escalated{Lead: approvers.Role{Name: "finance-director"}}, func(r *approvers.Request) { r.Joined = []string{"finance-director"} },
			consequences{timers: "+muster", audit: "escalated", messages: "escalation role:finance-director", cards: true},
		},
		"Escalated, again":            {approvers.Escalated{Again: true}, keep, consequences{audit: "escalated", cards: true}},
		"ReminderDue":                 {approvers.ReminderDue{People: []approvers.Identity{lead}}, keep, consequences{audit: "reminded", messages: "notice user:U0002", cards: true}},
		"ReminderDue, nobody is here": {approvers.ReminderDue{}, keep, consequences{cards: true}},
		"PersonInvited":               {approvers.PersonInvited{Invite: approvers.Invite{Who: fin1.ID, By: lead.ID}}, keep, consequences{audit: "invited", messages: "card user:U0003"}},
		"AvailabilityResolved":        {approvers.AvailabilityResolved{}, keep, consequences{}},
		"AvailabilityResolved, to recheck": {
			approvers.AvailabilityResolved{RecheckAt: time.Date(2026, 3, 2, 12, 0, 0, 0, time.UTC)}, keep,
			consequences{timers: "+muster"},
		},
		"LeadCalled": {approvers.LeadCalled{}, keep, consequences{}},
		"RemarkMade, a question": {
			approvers.RemarkMade{Index: 0}, func(r *approvers.Request) { r.Remarks = []approvers.Remark{{Kind: approvers.Question, By: lead.ID}} },
			consequences{messages: "question conversation"},
		},
		"RemarkMade, an answer": {
			approvers.RemarkMade{Index: 1}, func(r *approvers.Request) {
				r.Remarks = []approvers.Remark{{Kind: approvers.Question, By: lead.ID}, {Kind: approvers.Answer, By: alice.ID}}
			},
			consequences{messages: "notice user:U0002"},
		},
		"RemarkMade, a comment": {
			approvers.RemarkMade{Index: 0}, func(r *approvers.Request) { r.Remarks = []approvers.Remark{{Kind: approvers.Comment, By: lead.ID}} },
			consequences{},
		},
		"SourceEdited": {approvers.SourceEdited{}, func(r *approvers.Request) { r.Facts.MessageEdit = &approvers.MessageEdit{Text: "no"} }, consequences{audit: "reworded"}},
		"AnswerEdited": {
			approvers.AnswerEdited{Index: 1}, func(r *approvers.Request) {
				r.Remarks = []approvers.Remark{{Kind: approvers.Question, By: lead.ID}, {Kind: approvers.Answer, By: alice.ID, MessageEdit: &approvers.MessageEdit{Deleted: true}}}
			},
			consequences{audit: "reworded", messages: "notice user:U0002"},
		},
		"ValuesRevealed": {approvers.ValuesRevealed{By: lead.ID}, keep, consequences{}},
		"PreviewMade": {
			approvers.PreviewMade{Headline: true}, func(r *approvers.Request) {
				r.ToolPreview = &approvers.ToolPreview{State: approvers.ToolPreviewReady}
				r.Preview = "It would refund 600"
			},
			consequences{audit: "previewed", turn: "another preview"},
		},
	}
	named := map[string]bool{}
	for name, tt := range tests {
		named[strings.TrimPrefix(fmt.Sprintf("%T", tt.event), "approvers.")] = true
		t.Run(name, func(t *testing.T) {
			h := newBareHarness(t, t.TempDir()) // a harness without invariants: an event alone leaves a state that no transition produces
			var counted []string
			h.Count = func(_ context.Context, e workflow.Event) {
				switch {
				case e.Decision != nil:
					counted = append(counted, string(e.Decision.Kind))
				case e.Asked:
					counted = append(counted, "asked")
				case e.Approved:
					counted = append(counted, "approved")
				default:
					counted = append(counted, string(e.Ended))
				}
			}
			r := h.ask(`issue_refund {"amount":600}`)
			h.due() // handles the availability check
			h.loseCard(r)
			before := h.rowsOf(r)
			counted = nil
			h.ok(h.ApplyEvents(h.ctx(), r.ID, tt.change, tt.event))
			got := h.rowsOf(r).since(before)
			got.counted = strings.Join(counted, " ")
			if got != tt.want {
				t.Errorf("got  %+v\nwant %+v", got, tt.want)
			}
		})
	}
	for _, kind := range eventKinds(t) {
		if !named[kind] {
			t.Errorf("no case here covers the event %s", kind)
		}
	}
}

// eventKinds lists the event types that package approvers declares.
func eventKinds(t *testing.T) (kinds []string) {
	t.Helper()
	f, err := parser.ParseFile(token.NewFileSet(), "../event.go", nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	for _, d := range f.Decls {
		if fn, ok := d.(*ast.FuncDecl); ok && fn.Name.Name == "requestEvent" {
			kinds = append(kinds, fn.Recv.List[0].Type.(*ast.Ident).Name)
		}
	}
	return kinds
}

// rows is a snapshot of the rows that an event may change.
type rows struct {
	timers   map[store.TimerKind]bool
	messages map[string]string // id → kind and address
	lost     bool
	call     store.Call
	trust    int
	audit    []approvers.AuditRecord
}

// loseCard marks the request's card as lost in Slack. loseCard also sets the streak of unchanged approvals of the
// request's tool to three.
func (h *harness) loseCard(r approvers.Request) {
	h.t.Helper()
	h.ok(h.store.Update(h.ctx(), func(t store.Tx) error {
		messages, err := t.OutboxMessagesOf(r.ID)
		if err != nil {
			return err
		}
		for _, m := range messages {
			m.State = store.OutboxLost
			if err := t.PutOutboxMessage(m); err != nil {
				return err
			}
		}
		raw, err := json.Marshal(approvers.Trust{Row: 3})
		if err != nil {
			return err
		}
		return t.PutSetting(store.Setting{Key: store.SettingTrust + r.Agent + "/" + r.Tool, Value: raw})
	}))
}

func (h *harness) rowsOf(r approvers.Request) rows {
	h.t.Helper()
	out := rows{timers: map[store.TimerKind]bool{}, messages: map[string]string{}, call: h.call(r.Call)}
	for _, kind := range []store.TimerKind{store.TimerExpire, store.TimerEscalate, store.TimerRemind, store.TimerAvailability, store.TimerPreview} {
		_, out.timers[kind] = h.timers(kind)[r.ID]
	}
	_, out.timers[store.TimerRun] = h.timers(store.TimerRun)[r.Execution]
	for _, m := range h.messagesOf(r.ID) {
		to, _, _ := strings.Cut(m.To, ":conv") // a conversation's id is random
		out.messages[m.ID] = string(m.Kind) + " " + to
		out.lost = out.lost || m.State == store.OutboxLost
	}
	out.audit = readStore(h, func(s store.Reader) ([]approvers.AuditRecord, error) { return s.Audit(r.ID) })
	s := readStore(h, func(s store.Reader) (store.Setting, error) {
		return s.Setting(store.SettingTrust + r.Agent + "/" + r.Tool)
	})
	var trust approvers.Trust
	h.ok(json.Unmarshal(s.Value, &trust))
	out.trust = trust.Row
	return out
}

// now.since returns the differences between earlier rows and the rows now.
func (now rows) since(before rows) (out consequences) {
	var timers, audit, messages []string
	for _, kind := range slices.Sorted(maps.Keys(now.timers)) {
		switch {
		case now.timers[kind] && !before.timers[kind]:
			timers = append(timers, "+"+string(kind))
		case !now.timers[kind] && before.timers[kind]:
			timers = append(timers, "-"+string(kind))
		}
	}
	for _, a := range now.audit[len(before.audit):] {
		audit = append(audit, string(a.Kind))
	}
	for id, m := range now.messages {
		if _, old := before.messages[id]; !old {
			messages = append(messages, m)
		}
	}
	slices.Sort(timers)
	slices.Sort(messages)
	out.timers, out.audit, out.messages = strings.Join(timers, " "), strings.Join(audit, " "), strings.Join(messages, ", ")
	out.cards, out.doubt = before.lost && !now.lost, now.trust < before.trust
	switch {
	case now.call.Outcome != before.call.Outcome:
		out.turn = string(now.call.Outcome)
	case now.call.Execution != before.call.Execution:
		out.turn = "another execution"
	case now.call.Preview != before.call.Preview:
		out.turn = "another preview"
	}
	return out
}
