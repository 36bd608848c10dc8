package bot

import (
	"context"
	"fmt"
	"regexp"
	"strings"
	"testing"
	"time"

	"countersign/approvers"
	"countersign/approvers/workflow"
	"countersign/bot/bottest"
	"countersign/bot/render/control"
	"countersign/internal/testkit"
)

// attack is one attempt to cause a decision that must not happen.
type attack struct {
	name  string
	code  approvers.Code // code of the recorded attempt; empty: the attempt is not recorded
	words string         // text that the attacker must see
	// try performs the attack. The function returns the target, the attacker, and the immediate answer of a form.
	try func(*attackHarness) (t target, attacker, answer string)
}

// click performs an attack with one click on the card of a refund.
func (s *attackHarness) click(user, action string, change func(payload, target)) (target, string, string) {
	t := s.refund()
	p := t.press(user, action)
	change(p, t)
	return t, user, s.send(p)
}

// value returns an attack with a forged button value.
func value(name string, code approvers.Code, words string, change func(s *attackHarness, t target) string) attack {
	return attack{name, code, words, func(s *attackHarness) (target, string, string) {
		t := s.refund()
		return t, "U0002", s.send(t.press("U0002", control.ActApprove).with(change(s, t)))
	}}
}

// forging returns an attack with a changed button token.
func forging(name string, code approvers.Code, words string, change func(s *attackHarness, m *control.ButtonToken)) attack {
	return value(name, code, words, func(s *attackHarness, t target) string {
		change(s, &t.ButtonToken)
		return t.String()
	})
}

// The function "by" returns an attack by a person without permission.
func by(name, user string, code approvers.Code, words string, before func(*attackHarness)) attack {
	return attack{name, code, words, func(s *attackHarness) (target, string, string) {
		t := s.refund()
		if before != nil {
			before(s)
		}
		return t, user, s.send(t.press(user, control.ActApprove))
	}}
}

// The function "after" returns an attack on a request that has ended.
func after(name string, words string, end func(s *attackHarness, t target)) attack {
	return attack{name, approvers.DeniedResolved, words, func(s *attackHarness) (target, string, string) {
		t := s.refund()
		end(s, t)
		s.quiet()
		return t, "U0002", s.send(t.press("U0002", control.ActApprove))
	}}
}

// submitted returns an attack by a form about a refund.
func submitted(name, user, callback string, code approvers.Code, words string, metadata func(*attackHarness, target) string, values map[string]string) attack {
	return attack{name, code, words, func(s *attackHarness) (target, string, string) {
		t := s.refund()
		return t, user, s.send(t.form(user, callback, metadata(s, t), values))
	}}
}

func asDrawn(s *attackHarness, t target) string { return s.filled(t, 0) }

const (
	madeUp   = "I did not make the button that you clicked"
	aCopy    = "is a copy"
	anew     = "the message changed while you clicked"
	tooLate  = "Too late"
	noMember = "you are not a member of that role"
)

var noReason = map[string]string{control.FieldReason: ""}

// attacks returns all attacks: forged, copied, late, or by the wrong person.
func attacks() []attack {
	out := []attack{
		forging("another print", approvers.DeniedUnrecorded, anew, func(_ *attackHarness, m *control.ButtonToken) { m.Print = "0000000000000000" }),
		forging("a version that is still to come", approvers.DeniedUnrecorded, anew, func(_ *attackHarness, m *control.ButtonToken) { m.Post += 7 }),
		forging("version 0", approvers.DeniedUnrecorded, anew, func(_ *attackHarness, m *control.ButtonToken) { m.Post = 0 }),
		forging("another request", approvers.DeniedForged, madeUp, func(s *attackHarness, m *control.ButtonToken) { m.Ref = s.refund().Ref }),
		forging("another card of the same kind", approvers.DeniedForged, madeUp, func(s *attackHarness, m *control.ButtonToken) { m.Message = s.refund().Message }),
		forging("no such card", approvers.DeniedNotFound, "don't know this request", func(_ *attackHarness, m *control.ButtonToken) { m.Message = "s_none" }),
		forging("no such request", approvers.DeniedForged, madeUp, func(_ *attackHarness, m *control.ButtonToken) { m.Ref = "req_none" }),
		forging("letters of another alphabet", approvers.DeniedForged, madeUp, func(_ *attackHarness, m *control.ButtonToken) { m.Ref = strings.Replace(m.Ref, "e", "е", 1) }),
		forging("letters of another case", approvers.DeniedForged, madeUp, func(_ *attackHarness, m *control.ButtonToken) { m.Ref = strings.ToUpper(m.Ref) }),
		value("no token", "", madeUp, func(*attackHarness, target) string { return "approve everything" }),
		value("an empty value", "", madeUp, func(*attackHarness, target) string { return "" }),
		value("a token and more", "", madeUp, func(_ *attackHarness, t target) string { return t.String() + " approve" }),
		value("a token and a line feed", "", madeUp, func(_ *attackHarness, t target) string { return t.String() + "\n" }),
		value("a negative version", "", madeUp, func(_ *attackHarness, t target) string { return t.Ref + " " + t.Message + " -1 " + t.Print }),
		value("a huge value", "", madeUp, func(*attackHarness, target) string { return strings.Repeat("req ", 100_000) }),
		value("a value with a quotation mark", "", madeUp, func(_ *attackHarness, t target) string {
			return t.Ref + ` ` + t.Message + ` ` + fmt.Sprint(t.Post) + ` "` + t.Print
		}),
		{"the token of another card", approvers.DeniedCopied, aCopy, func(s *attackHarness) (target, string, string) {
			t, other := s.refund(), s.refund()
			return other, "U0002", s.send(t.press("U0002", control.ActApprove).with(other.String()))
		}},
	}
	for action, name := range map[string]string{
		"approve_now": "an action that is not known", control.ActTyped: "an action of critical cards", control.ActApproveAll: "an action of bundles", control.ActResume: "an action of a pause",
		control.ActAccept: "an action of grants", control.ActTryAgain: "an action of turns", control.ActHappened: "an action of unknown outcomes", control.ActChoose + "0": "an action of questions",
	} {
		out = append(out, attack{name, approvers.DeniedForged, madeUp, func(s *attackHarness) (target, string, string) {
			return s.click("U0002", action, func(payload, target) {})
		}})
	}
	place := func(name string, code approvers.Code, words string, change func(payload, target)) attack {
		return attack{name, code, words, func(s *attackHarness) (target, string, string) { return s.click("U0002", control.ActApprove, change) }}
	}
	out = append(out,
		place("another message", approvers.DeniedCopied, aCopy, func(p payload, t target) { p.at(t.channel, "1.1") }),
		place("another channel", approvers.DeniedCopied, aCopy, func(p payload, t target) { p.at("C0001", t.ts) }),
		place("an ephemeral copy", approvers.DeniedCopied, aCopy, func(p payload, t target) {
			p.and("container", payload{"type": "message", "channel_id": t.channel, "message_ts": "9.9", "is_ephemeral": true})
		}),
		place("a direct message to oneself", approvers.DeniedCopied, aCopy, func(p payload, _ target) { p.at("D0099", "2.2") }),
		place("no message at all", approvers.DeniedCopied, aCopy, func(p payload, _ target) { delete(p, "message"); p.at("", "") }),
		place("a message of another bot", approvers.DeniedCopied, aCopy, func(p payload, t target) {
			p.at(t.channel, "3.3").and("message", payload{"ts": "3.3", "bot_id": "B9999"})
		}),
		place("another workspace", approvers.DeniedWorkspace, "another workspace", func(p payload, _ target) { p.and("team", payload{"id": "T0999"}) }),
		place("no workspace", approvers.DeniedWorkspace, "another workspace", func(p payload, _ target) { delete(p, "team") }),
		place("another enterprise", approvers.DeniedWorkspace, "another workspace", func(p payload, _ target) {
			p.and("team", nil).and("enterprise", payload{"id": "E0001"})
		}),
		place("another app", approvers.DeniedWorkspace, "another workspace", func(p payload, _ target) { p.and("api_app_id", "A9999") }),
		after("a click after the approval", tooLate, func(s *attackHarness, t target) { s.decides(t, "U0002", control.ActApprove) }),
		after("a click after the rejection", tooLate, func(s *attackHarness, t target) {
			s.send(t.form("U0002", control.ActReject, s.filled(t, 0), map[string]string{control.FieldReason: "no"}))
		}),
		after("a click after the withdrawal", tooLate, func(s *attackHarness, t target) { s.withdraws(t) }),
		after("a click after the tool changed", tooLate, func(s *attackHarness, t target) {
			changed := s.tools["issue_refund"]
			was := changed
			changed.Hash = "another"
			s.tools["issue_refund"] = changed
			s.t.Cleanup(func() { s.tools["issue_refund"] = was })
			s.decides(t, "U0002", control.ActApprove)
			s.tools["issue_refund"] = was
		}),
		attack{"a click after the time was over", approvers.DeniedResolved, tooLate, func(s *attackHarness) (target, string, string) {
			t := s.refund()
			s.expire(t.Ref)
			s.until("its time is over", func() bool {
				r, err := s.workflow.Views.Request(context.Background(), t.Ref)
				return err == nil && r.State == approvers.Expired
			})
			return t, "U0002", s.send(t.press("U0002", control.ActApprove))
		}},
		after("a click after the operator's rejection", tooLate, func(s *attackHarness, t target) {
			if _, err := s.workflow.Requests.Overrule(context.Background(), workflow.Click{Who: approvers.Operates(approvers.Operator("root")), Request: t.Ref, Kind: approvers.Reject, Reason: "no", At: time.Now()}); err != nil {
				s.t.Fatal(err)
			}
		}),
		attack{"a card from before the arguments were changed", approvers.DeniedStale, "the arguments were changed", func(s *attackHarness) (target, string, string) {
			s.stages(approvers.Stage{Approver: "team-lead", Quorum: 1}, approvers.Stage{Approver: "finance-director", Quorum: 1})
			t := s.refund()
			s.send(t.form("U0002", control.ActModify, s.filled(t, 0), map[string]string{"arg.amount": "4"}))
			s.quiet()
			return t, "U0003", s.send(t.press("U0003", control.ActApprove))
		}},
		attack{"a card of the stage before", approvers.DeniedStage, "the next stage began", func(s *attackHarness) (target, string, string) {
			t := s.stageBefore()
			return t, "U0003", s.send(t.press("U0003", control.ActApprove))
		}},
		attack{"a form of a card of the stage before", approvers.DeniedStage, "the next stage began", func(s *attackHarness) (target, string, string) {
			t := s.stageBefore()
			return t, "U0003", s.send(t.form("U0003", control.ActReject, s.filled(t, 0), map[string]string{control.FieldReason: "no"}))
		}},
	)
	out = append(out, wrongPeople()...)
	return append(out, wrongForms()...)
}

// No attack changes anything. The attacker is told the reason for the refusal, and, in most cases, the target's history
// records the attempt.
func TestAttacks(t *testing.T) {
	testkit.SkipIfShort(t)
	t.Parallel()
	s := newAttackHarness(t, func(h *harness) {
		h.tools["update_shipping_address"] = bottest.Tool("update_shipping_address", `{"oneOf":[{"type":"object"}]}`, approvers.Idempotent) // a form shows such arguments as JSON
		for _, user := range []string{"U0900", "U0901", "U0902", "U0903", "U0904"} {
			h.policy.Approvers[1].Members = append(h.policy.Approvers[1].Members, approvers.Member{Kind: approvers.MemberUser, Value: user})
		}
	})
	suite := s.t
	defer func() { s.t = suite }()
	tried, accepted, recorded, keptOpen := 0, 0, 0, 0
	names := map[string]bool{}
	for _, a := range attacks() {
		if names[a.name] {
			t.Fatalf("two attacks are called %q", a.name)
		}
		names[a.name] = true
		t.Run(a.name, func(t *testing.T) {
			s.t = t
			tried++
			since := s.tap.count()
			target, attacker, answer := a.try(s)
			defer func() { // runs even if a check below fails
				s.quiet()
				s.restored()
				if got, was := s.fate(target.Ref), s.before[target.Ref]; got != was {
					accepted++
					t.Errorf("the state changed: %s, was %s", got, was)
				}
				clear(s.before)
			}()
			s.quiet() // waits until the bot has recorded the attempt and answered the attacker
			if a.code != "" {
				denials := s.denials(target.Ref)
				if len(denials) == 0 {
					t.Fatal("the attempt is not recorded")
				}
				recorded++
				last := denials[len(denials)-1]
				if got, _, _ := strings.Cut(last, " "); got != string(a.code) {
					t.Errorf("recorded as %q, want %q", last, a.code)
				}
			}
			line := regexp.MustCompile(`"a click was refused" inbox=\S+ request=` + target.Ref + ` conversation=conv_\S+ tool=\w+ user=` + attacker)
			if a.code == approvers.DeniedUnrecorded && !line.MatchString(s.log.String()) {
				t.Error("the log does not name the request of the refused click")
			}
			if strings.Contains(answer, `"response_action":"errors"`) {
				keptOpen++
			}
			if !strings.Contains(answer, a.words) && !s.tap.told(since, attacker, a.words) {
				t.Errorf("%s is not told %q", attacker, a.words)
			}
		})
	}
	if strings.Contains(s.log.String(), "panicked") {
		t.Error(s.log.String())
	}
	if len(names) < 50 || accepted > 0 {
		t.Errorf("%d attacks, %d accepted", len(names), accepted)
	}
	t.Logf("attacks=%d accepted=%d: %d recorded with their targets, %d forms kept open with an error, %d without a target", tried, accepted, recorded, keptOpen, tried-recorded-keptOpen)
}
