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
	"countersign/approvers/desk"
	"countersign/store"
)

// siege is a workbench whose bot is attacked: each attack is on a request of its own, and must change nothing.
type siege struct {
	*workbench
	tap     *wiretap
	n       int
	restore func()            // puts back what the attack changed; nil: nothing
	before  map[string]string // by request: its fate before the last thing that was sent
}

// restored puts back what an attack changed.
func (s *siege) restored() {
	if s.restore != nil {
		s.restore()
		s.restore = nil
	}
}

func newSiege(t testing.TB, adjust ...func(*workbench)) *siege {
	s := &siege{tap: new(wiretap), before: map[string]string{}}
	s.workbench = newWorkbench(t, append(adjust, func(w *workbench) { w.http = &http.Client{Timeout: 10 * time.Second, Transport: s.tap} })...)
	return s
}

// target is a request under attack, with its card.
type target struct {
	mark              // of the card's first button
	channel, ts, root string
	order             string
}

// asks has somebody ask for a call, and finds its card in the approvers' channel by one of its buttons. ORDER in the arguments is a number of its own.
func (s *siege) asks(asker, call, button string) target {
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
	s.before[t.Ref] = ""
	return t
}

// card reads where the card of a request stands, and what its buttons are marked with.
func (s *siege) card(r store.Reader, request, button string, t *target) error {
	surfaces, err := r.SurfacesOf(request)
	for _, c := range surfaces {
		if c.Channel != t.channel || c.State != store.SurfaceShown {
			continue
		}
		shown, err := r.Rendering(c.ID, c.Posts)
		if err != nil {
			return err
		}
		_, rest, _ := strings.Cut(string(shown.Body), `"action_id":"`+button+`","value":"`)
		value, _, _ := strings.Cut(rest, `"`)
		t.ts = c.TS
		t.mark, err = readMark(value)
		return err
	}
	return err
}

// refund is a high-risk call that waits for Teo.
func (s *siege) refund() target {
	return s.asks("sam", `issue_refund {"order_id":"ORDER","amount":5}`, actApprove)
}

// address is a medium-risk call that waits for Ada and the group @support.
func (s *siege) address() target {
	return s.asks("sam", `update_shipping_address {"order_id":"ORDER"}`, actApprove)
}

// critical is a call that takes a typed value, and waits for Teo.
func (s *siege) critical() target {
	return s.asks("sam", `cancel_account {"user_id":"ORDER"}`, actTyped)
}

// long is a call that its card can't show whole.
func (s *siege) long() target {
	return s.asks("sam", `issue_refund {"order_id":"ORDER","amount":5,"reason":"`+strings.Repeat("much to read ", 2000)+`"}`, actArguments)
}

// payload is an interaction as Slack would deliver it.
type payload map[string]any

// press is a click on a target's card.
func (t target) press(user, action string) payload {
	return payload{
		"type": "block_actions", "api_app_id": "A0001", "user": payload{"id": user}, "team": payload{"id": "T0001"},
		"container": payload{"type": "message", "channel_id": t.channel, "message_ts": t.ts}, "message": payload{"ts": t.ts},
		"actions": []any{payload{"action_id": action, "value": t.String()}},
	}
}

// with changes the value of the clicked button.
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

// form is a form on a target, as it is submitted.
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

// filled is what the form on a target names when the bot has drawn it.
func (s *siege) filled(t target, page int) string {
	s.t.Helper()
	r, err := s.desk.Request(context.Background(), t.Ref)
	if err != nil {
		s.t.Fatal(err)
	}
	return formMark{mark: t.mark, Execution: r.Execution, Page: page}.String()
}

// send delivers a payload, and returns what the acknowledgement says of it.
func (s *siege) send(p payload) string {
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
	answer, err := s.bot.receive(context.Background(), store.InboxInteraction, raw, s.bot.inOrder.next(time.Now()))
	if err != nil {
		s.t.Fatal(err)
	}
	text, err := json.Marshal(answer.payload)
	if err != nil {
		s.t.Fatal(err)
	}
	return string(text)
}

// decides has Teo approve a target, and waits until the click is handled.
func (s *siege) decides(t target, user, action string) {
	s.t.Helper()
	s.send(t.press(user, action))
	s.quiet()
}

// stages has refunds wait for other people from now on, in the channel.
func (s *siege) stages(stages ...approvers.Stage) {
	was := s.policy
	s.changes(func(p *approvers.Policy) {
		p.Tools[toolIndex(p, "issue_refund")].Stages = stages
		p.Approvers[2].Cards = "#support-approvals"
		p.Approvers[2].Members = append(p.Approvers[2].Members, approvers.Member{Kind: approvers.MemberUser, Value: "U0002"})
	})
	s.restore = func() { s.decree(was) }
}

// withdraws has Sam withdraw what he asked for.
func (s *siege) withdraws(t target) {
	s.t.Helper()
	r, err := s.desk.Request(context.Background(), t.Ref)
	if err != nil {
		s.t.Fatal(err)
	}
	sam := approvers.Identity{ID: r.Facts.Asker, Name: "Sam"}
	if _, err := s.desk.Withdraw(context.Background(), desk.Click{Who: sam, Request: t.Ref, At: time.Now()}); err != nil {
		s.t.Fatal(err)
	}
}

// changes swaps the policy for one that differs.
func (s *siege) changes(change func(*approvers.Policy)) {
	s.n++
	p := testPolicy()
	p.Hash = fmt.Sprint("policy-", s.n)
	change(p)
	s.decree(p)
}

// fate is what could change by an attack.
func (s *siege) fate(request string) string {
	s.t.Helper()
	r, err := s.desk.Request(context.Background(), request)
	if err != nil {
		return err.Error()
	}
	return fmt.Sprint("decided ", len(r.Decisions), " times, closed by ", r.ClosedBy, ", would run ", r.Execution, " ", r.Digest, ", edits ", len(r.Edits), ", handed on ", len(r.Handed),
		", remarks ", len(r.Remarks), ", runs ", len(s.runs()))
}
