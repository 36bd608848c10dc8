package bot

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"countersign/approvers"
	"countersign/approvers/workflow"
	"countersign/bot/bottest"
	"countersign/bot/render/control"
	"countersign/store"
)

// attackHarness is a harness for attacks on the bot. Each attack is on a separate request, and must have no effect.
type attackHarness struct {
	*harness
	tap     *recordingTransport
	n       int
	restore func()            // undoes the change of an attack; nil: nothing to undo
	before  map[string]string // by request: its state before the last delivery
}

// restored undoes the change of an attack.
func (s *attackHarness) restored() {
	if s.restore != nil {
		s.restore()
		s.restore = nil
	}
}

func newAttackHarness(t testing.TB, adjust ...func(*harness)) *attackHarness {
	s := &attackHarness{tap: new(recordingTransport), before: map[string]string{}}
	s.harness = newHarness(t, append(adjust, func(h *harness) { h.http = &http.Client{Timeout: 10 * time.Second, Transport: s.tap} })...)
	return s
}

// target is a request under attack, with its card.
type target struct {
	control.ButtonToken // the token of the card's first button
	channel, ts, root   string
	order               string
}

// asks makes the person asker request a call. The method then finds the call's card in the approvers' channel. The card
// has the given button. ORDER in the arguments is replaced by a unique number.
func (s *attackHarness) asks(asker, call, button string) target {
	s.t.Helper()
	s.n++
	t := target{order: fmt.Sprintf("ORD-%04d", 1000+s.n), channel: "C0002"}
	t.root = s.says(asker, "#support", "@bot call "+strings.ReplaceAll(call, "ORDER", t.order))
	s.until("the card is recorded", func() bool {
		err := s.store.View(context.Background(), func(r store.Reader) error {
			open, err := r.OpenRequests(store.RequestCursor{}, 10_000)
			for _, q := range open {
				if strings.Contains(string(q.Args), t.order) {
					return s.card(r, q.ID, button, &t)
				}
			}
			return err
		})
		return err == nil && t.Ref != ""
	})
	s.quiet() // the attack's changes must not affect look-ups that the request has started
	s.before[t.Ref] = ""
	return t
}

// card reads the channel and timestamp of a request's card, and the token of its buttons.
func (s *attackHarness) card(r store.Reader, request, button string, t *target) error {
	messages, err := r.OutboxMessagesOf(request)
	for _, c := range messages {
		if c.Channel != t.channel || c.State != store.OutboxShown {
			continue
		}
		shown, err := r.Rendering(c.ID, c.Posts)
		if err != nil {
			return err
		}
		_, rest, _ := strings.Cut(string(shown.Body), `"action_id":"`+button+`","value":"`)
		value, _, _ := strings.Cut(rest, `"`)
		t.ts = c.TS
		t.ButtonToken, err = control.ParseButtonToken(value)
		return err
	}
	return err
}

// refund returns a high-risk call that waits for Teo.
func (s *attackHarness) refund() target {
	return s.asks("sam", `issue_refund {"order_id":"ORDER","amount":5}`, control.ActApprove)
}

// address returns a medium-risk call that waits for Ada and the group @support.
func (s *attackHarness) address() target {
	return s.asks("sam", `update_shipping_address {"order_id":"ORDER"}`, control.ActApprove)
}

// critical returns a call that requires a typed value and waits for Teo.
func (s *attackHarness) critical() target {
	return s.asks("sam", `cancel_account {"user_id":"ORDER"}`, control.ActTyped)
}

// The method "long" returns a call that is too long for its card.
func (s *attackHarness) long() target {
	return s.asks("sam", `issue_refund {"order_id":"ORDER","amount":5,"reason":"`+strings.Repeat("much to read ", 2000)+`"}`, control.ActArguments)
}

// payload is an interaction in Slack's format.
type payload map[string]any

// press returns a click on a target's card.
func (t target) press(user, action string) payload {
	return payload{
		"type": "block_actions", "api_app_id": "A0001", "user": payload{"id": user}, "team": payload{"id": "T0001"},
		"container": payload{"type": "message", "channel_id": t.channel, "message_ts": t.ts}, "message": payload{"ts": t.ts},
		"actions": []any{payload{"action_id": action, "value": t.String()}},
	}
}

// The method "with" changes the value of the clicked button.
func (p payload) with(value string) payload {
	p["actions"].([]any)[0].(payload)["value"] = value
	return p
}

func (p payload) at(channel, ts string) payload {
	p["container"] = payload{"type": "message", "channel_id": channel, "message_ts": ts}
	return p
}

func (p payload) and(key string, value any) payload {
	p[key] = value
	return p
}

// form returns a submitted form about a target.
func (t target) form(user, callback, metadata string, values map[string]string) payload {
	state := payload{}
	for block, v := range values {
		state[block] = payload{block: payload{"type": "plain_text_input", "value": v}}
	}
	return payload{
		"type": "view_submission", "api_app_id": "A0001", "user": payload{"id": user}, "team": payload{"id": "T0001"},
		"view": payload{"id": "V1", "callback_id": callback, "private_metadata": metadata, "state": payload{"values": state}},
	}
}

// filled returns the metadata of a form that the bot has drawn for a target.
func (s *attackHarness) filled(t target, page int) string {
	s.t.Helper()
	r, err := s.workflow.Views.Request(context.Background(), t.Ref)
	if err != nil {
		s.t.Fatal(err)
	}
	return control.FormToken{ButtonToken: t.ButtonToken, Execution: r.Execution, Page: page}.String()
}

// send delivers a payload, and returns the text of the acknowledgement.
func (s *attackHarness) send(p payload) string {
	s.t.Helper()
	s.n++
	if p["trigger_id"] == nil {
		p["trigger_id"] = fmt.Sprint("x.", s.n)
	}
	raw, err := json.Marshal(p)
	if err != nil {
		s.t.Fatal(err)
	}
	for request := range s.before {
		s.before[request] = s.fate(request)
	}
	answer, err := s.receive(store.InboxInteraction, raw)
	if err != nil {
		s.t.Fatal(err)
	}
	text, err := json.Marshal(answer)
	if err != nil {
		s.t.Fatal(err)
	}
	return string(text)
}

// decides clicks a button of a target's card as a user, and waits until the click is handled.
func (s *attackHarness) decides(t target, user, action string) {
	s.t.Helper()
	s.send(t.press(user, action))
	s.quiet()
}

// stages changes the stages of refunds, and lets their cards be posted in the channel.
func (s *attackHarness) stages(stages ...approvers.Stage) {
	was := s.policy
	s.changes(func(p *approvers.Policy) {
		p.Tools[toolIndex(p, "issue_refund")].Stages = stages
		p.Approvers[2].Cards = "#support-approvals"
		p.Approvers[2].Members = append(p.Approvers[2].Members, approvers.Member{Kind: approvers.MemberUser, Value: "U0002"})
	})
	s.restore = func() { s.setPolicy(was) }
}

// stageBefore returns a high-risk call that has passed its first stage. The target's card shows the first stage.
func (s *attackHarness) stageBefore() target {
	s.t.Helper()
	s.stages(approvers.Stage{Approver: "team-lead", Quorum: 1}, approvers.Stage{Approver: "finance-director", Quorum: 1})
	t := s.refund()
	s.decides(t, "U0002", control.ActApprove)
	return t
}

// withdraws makes Sam withdraw the call of a target.
func (s *attackHarness) withdraws(t target) {
	s.t.Helper()
	r, err := s.workflow.Views.Request(context.Background(), t.Ref)
	if err != nil {
		s.t.Fatal(err)
	}
	sam := approvers.Identity{ID: r.Facts.Asker, Name: "Sam"}
	if _, err := s.workflow.Requests.Withdraw(context.Background(), workflow.Click{Who: sam, Request: t.Ref, At: time.Now()}); err != nil {
		s.t.Fatal(err)
	}
}

// The method "changes" installs a changed policy.
func (s *attackHarness) changes(change func(*approvers.Policy)) {
	s.n++
	p := bottest.Policy()
	p.Hash = fmt.Sprint("policy-", s.n)
	change(p)
	s.setPolicy(p)
}

// fate describes all stored data that an attack could change.
func (s *attackHarness) fate(request string) string {
	s.t.Helper()
	r, err := s.workflow.Views.Request(context.Background(), request)
	if err != nil {
		return err.Error()
	}
	return fmt.Sprint("decided ", len(r.Decisions), " times, closed by ", r.ClosedBy, ", would run ", r.Execution, " ", r.Digest, ", edits ", len(r.Edits), ", handed on ", len(r.Handed),
		", remarks ", len(r.Remarks), ", runs ", len(s.runs()))
}
