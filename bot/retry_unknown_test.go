package bot

import (
	"fmt"
	"strings"
	"testing"

	"countersign/bot/render/control"
	"countersign/internal/testkit"
	"countersign/store"
)

// The method "lost" gives a refund an unknown outcome. Sam requests the refund in a channel, Teo approves it, and
// the process stops during the run. The method "lost" returns the thread's root and the question to Teo.
func (h *harness) lost(channel string) (root string, asked posted) {
	h.t.Helper()
	h.hold = make(chan struct{})
	root = h.says("sam", channel, refundCall)
	card := h.finds("teo", "#support-approvals", "", "Waits for Team Lead")
	h.clicks("teo", "#support-approvals", card, control.ActApprove)
	h.until("it runs", func() bool { return len(h.runs()) == 1 })
	close(h.hold)
	h.stop()
	h.mu.Lock()
	h.hold = nil
	h.mu.Unlock()
	h.lose()
	h.start()
	return root, h.finds("teo", "#support-approvals", "", "Did this happen?", "The bot stopped while issue_refund was running", "It may have acted")
}

// The requester and the approvers can report the outcome of a run, and can request the call again. If another person
// clicks one of these buttons, the bot says who can use the button.
func TestWhoMaySayWhatHappened(t *testing.T) {
	testkit.SkipIfShort(t)
	t.Parallel()
	h := newHarness(t, func(h *harness) { h.policy.Agents[0].Channels = []string{"#support", "#supplier-desk"} })
	root, _ := h.lost("#supplier-desk")
	h.quiet()
	inThread := h.finds("sam", "#supplier-desk", root, "Did this happen?")
	const only = "only those who asked for this, and people of Team Lead can say what happened"
	for _, user := range []string{"ada", "xavier"} { // a colleague of another role, and a person of the supplier
		for i, action := range []string{control.ActDidNot, control.ActLeave, control.ActAskAgain, control.ActHappened} {
			h.clicks(user, "#supplier-desk", inThread, action)
			if action == control.ActHappened {
				h.submits(user, h.opened(user, control.ActHappened), map[string]any{control.FieldResult: "RF-9"})
			}
			h.until(fmt.Sprintf("%s is told who can (%d)", user, i+1), func() bool {
				n := 0
				for _, channel := range []string{"#supplier-desk", "U0BOT"} {
					thread := map[bool]string{true: root}[channel != "U0BOT"]
					for _, p := range h.sees(user, channel, thread) {
						n += strings.Count(p.Text, only)
					}
				}
				return n == i+1
			})
		}
	}
	h.clicks("ingrid", "#support-approvals", h.finds("ingrid", "#support-approvals", "", "Did this happen?"), control.ActAskAgain) // the lead, who was not asked
	h.finds("ingrid", "#support-approvals", "", only)
	if n := len(h.unknowns()); n != 1 {
		t.Errorf("%d runs are unknown; want one", n)
	}
	h.clicks("sam", "#supplier-desk", inThread, control.ActDidNot)
	h.finds("sam", "#supplier-desk", root, "Reported by <@U0100>: it did not happen")
	h.finds("teo", "#support-approvals", "", "Refund for order ORD-123", "Reported by <@U0100>: it did not happen")
	h.finds("sam", "#supplier-desk", root, "results: error")
}

// unknowns lists the runs for which people are asked whether they happened.
func (h *harness) unknowns() (refs []string) {
	h.t.Helper()
	err := h.store.View(h.t.Context(), func(r store.Reader) error {
		timers, err := r.Timers(store.TimerLeave, 10)
		refs = nil
		for _, t := range timers {
			refs = append(refs, t.Ref)
		}
		return err
	})
	if err != nil {
		h.t.Fatal(err)
	}
	return refs
}

// If the requester requests the call again, the new request waits for the approvers. The card of the new request says
// that the call may already have happened. Only one such new request can wait at a time.
func TestAskAgainInSlack(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	root, asked := h.lost("#support")
	inThread := h.finds("sam", "#support", root, "Did this happen?")
	h.clicks("sam", "#support", inThread, control.ActAskAgain)
	card := h.finds("teo", "#support-approvals", "", "Waits for Team Lead", "This may have happened already.", "Asked again by <@U0100>", "See the earlier run")
	h.finds("sam", "#support", root, "Waits for Team Lead", "Asked again by <@U0100>: it is unknown whether an earlier run happened")
	if again := h.finds("teo", "#support-approvals", "", "Did this happen?", "Asked again by <@U0100>", "It waits for Team Lead", "See the card"); again.TS != asked.TS || again.has(control.ActAskAgain) {
		t.Errorf("it can be requested again while an earlier new request waits: %s", again.raw)
	}
	h.clicks("teo", "#support-approvals", card, control.ActApprove)
	h.finds("sam", "#support", root, "results: executed", "it may have happened besides")
	if runs := h.runs(); len(runs) != 2 || runs[0] != runs[1] {
		t.Errorf("it ran as %q", runs)
	}
	left := h.finds("teo", "#support-approvals", "", "Did this happen?", "Asked again by <@U0100>", "Approved by <@U0002>")
	if left.has(control.ActAskAgain) || left.has(control.ActLeave) || !left.has(control.ActDidNot) {
		t.Errorf("the earlier run can still be reported on: %s", left.raw)
	}
	h.clicks("teo", "#support-approvals", left, control.ActDidNot)
	h.finds("teo", "#support-approvals", "", "Refund for order ORD-123", "Reported by <@U0002>: it did not happen", "Asked again by <@U0100>")
}

// If somebody reports that the first run took effect, the new request ends. The call does not run a second time, and
// the agent is told the outcome.
func TestAskAgainAndItHadHappened(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	root, asked := h.lost("#support")
	h.clicks("teo", "#support-approvals", asked, control.ActAskAgain)
	h.finds("teo", "#support-approvals", "", "Waits for Team Lead", "This may have happened already.")
	asked = h.finds("teo", "#support-approvals", "", "Did this happen?", "Asked again by <@U0002>")
	h.clicks("teo", "#support-approvals", asked, control.ActHappened)
	if out := h.submits("teo", h.opened("teo", control.ActHappened), map[string]any{control.FieldResult: "RF-9"}); out["ok"] != true {
		t.Fatalf("%v", out)
	}
	h.finds("teo", "#support-approvals", "", "Voided", "somebody reported that the earlier run of it happened")
	h.finds("sam", "#support", root, "results: executed", "a person reported that it happened", "RF-9")
	if runs := h.runs(); len(runs) != 1 {
		t.Errorf("it ran %d times", len(runs))
	}
}

// After the agent was told that the outcome is unknown, the call can't be requested again.
func TestNothingIsAskedAgainOnceTheAgentWasTold(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	root, asked := h.lost("#support")
	h.clicks("teo", "#support-approvals", asked, control.ActLeave)
	h.finds("sam", "#support", root, "results: unknown")
	told := h.finds("teo", "#support-approvals", "", "Did this happen?", "The agent was told that the outcome is unknown", "ask the agent again in the thread")
	if told.has(control.ActAskAgain) || told.has(control.ActLeave) {
		t.Errorf("a button without effect is offered: %s", told.raw)
	}
}
