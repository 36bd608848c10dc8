package bot

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"countersign/approvers"
	"countersign/store"
)

// lost has a refund that Sam asks for in a channel and Teo approves run while the process stops, so that nobody knows how it ended. It returns the
// thread's root and what Teo is asked.
func (w *workbench) lost(channel string) (root string, asked posted) {
	w.t.Helper()
	w.hold = make(chan struct{})
	root = w.says("sam", channel, refundCall)
	card := w.finds("teo", "#support-approvals", "", "Waits for Team Lead")
	w.clicks("teo", "#support-approvals", card, actApprove)
	w.until("it runs", func() bool { return len(w.runs()) == 1 })
	close(w.hold)
	w.stop()
	w.mu.Lock()
	w.hold = nil
	w.mu.Unlock()
	w.lose()
	w.start()
	return root, w.finds("teo", "#support-approvals", "", "Did this happen?", "The bot stopped while issue_refund was running", "It may or may not have happened")
}

// Whoever asked for it and those who may approve it can say what became of a run, and ask again. Everybody else is told who can, whatever they click.
func TestWhoMaySayWhatHappened(t *testing.T) {
	w := newWorkbench(t, func(w *workbench) { w.policy.Agents[0].Channels = []string{"#support", "#supplier-desk"} })
	root, _ := w.lost("#supplier-desk")
	w.quiet()
	inThread := w.finds("sam", "#supplier-desk", root, "Did this happen?")
	const only = "only those who asked for this, and people of Team Lead can say what became of it"
	for _, user := range []string{"ada", "xavier"} { // a colleague of another role, and a stranger of the supplier
		for i, action := range []string{actDidNot, actLeave, actAskAgain, actHappened} {
			w.clicks(user, "#supplier-desk", inThread, action)
			if action == actHappened {
				w.submits(user, w.opened(user, actHappened), map[string]any{fieldResult: "RF-9"})
			}
			w.until(fmt.Sprintf("%s is told who can (%d)", user, i+1), func() bool {
				n := 0
				for _, channel := range []string{"#supplier-desk", "U0BOT"} {
					thread := map[bool]string{true: root}[channel != "U0BOT"]
					for _, p := range w.sees(user, channel, thread) {
						n += strings.Count(p.Text, only)
					}
				}
				return n == i+1
			})
		}
	}
	w.clicks("ingrid", "#support-approvals", w.finds("ingrid", "#support-approvals", "", "Did this happen?"), actAskAgain) // the lead, who was not told of it
	w.finds("ingrid", "#support-approvals", "", only)
	if n := len(w.unknowns()); n != 1 {
		t.Errorf("%d runs are unknown; want the one", n)
	}
	w.clicks("sam", "#supplier-desk", inThread, actDidNot)
	w.finds("sam", "#supplier-desk", root, "Reported by <@U0100>: it did not happen")
	w.finds("teo", "#support-approvals", "", "Did this happen?", "Reported by <@U0100>: it did not happen")
	w.finds("sam", "#supplier-desk", root, "results: error")
}

// unknowns lists the calls about which people are asked.
func (w *workbench) unknowns() (refs []string) {
	w.t.Helper()
	err := w.store.View(w.t.Context(), func(r store.Reader) error {
		timers, err := r.Timers(store.TimerLeave, 10)
		refs = nil
		for _, t := range timers {
			refs = append(refs, t.Ref)
		}
		return err
	})
	if err != nil {
		w.t.Fatal(err)
	}
	return refs
}

// Asked again by whoever asked for it, it waits anew for those who approve it; the card says that it may have happened before. Only once at a time.
func TestAskAgainInSlack(t *testing.T) {
	w := newWorkbench(t)
	root, asked := w.lost("#support")
	inThread := w.finds("sam", "#support", root, "Did this happen?")
	w.clicks("sam", "#support", inThread, actAskAgain)
	card := w.finds("teo", "#support-approvals", "", "Waits for Team Lead", "This may have happened already.", "Asked again by <@U0100>", "See the earlier run")
	w.finds("sam", "#support", root, "Waits for Team Lead", "Asked again by <@U0100>: nobody knows whether an earlier run happened")
	if again := w.finds("teo", "#support-approvals", "", "Did this happen?", "Asked again by <@U0100>", "It waits for Team Lead", "See the card"); again.TS != asked.TS || again.has(actAskAgain) {
		t.Errorf("it can be asked again twice at a time: %s", again.raw)
	}
	w.clicks("teo", "#support-approvals", card, actApprove)
	w.finds("sam", "#support", root, "results: executed", "it may have happened besides")
	if runs := w.runs(); len(runs) != 2 || runs[0] != runs[1] {
		t.Errorf("it ran as %q", runs)
	}
	left := w.finds("teo", "#support-approvals", "", "Did this happen?", "Asked again by <@U0100>", "Approved by <@U0002>")
	if left.has(actAskAgain) || left.has(actLeave) || !left.has(actDidNot) {
		t.Errorf("what can be said of the earlier run: %s", left.raw)
	}
	w.clicks("teo", "#support-approvals", left, actDidNot)
	w.finds("teo", "#support-approvals", "", "It ran", "An earlier run of this call ended unknown", "<@U0002> reported since: it did not happen")
}

// Found out to have happened after all: the new request ends, nothing runs a second time, and the agent is told what was found.
func TestAskAgainAndItHadHappened(t *testing.T) {
	w := newWorkbench(t)
	root, asked := w.lost("#support")
	w.clicks("teo", "#support-approvals", asked, actAskAgain)
	w.finds("teo", "#support-approvals", "", "Waits for Team Lead", "This may have happened already.")
	asked = w.finds("teo", "#support-approvals", "", "Did this happen?", "Asked again by <@U0002>")
	w.clicks("teo", "#support-approvals", asked, actHappened)
	if out := w.submits("teo", w.opened("teo", actHappened), map[string]any{fieldResult: "RF-9"}); out["ok"] != true {
		t.Fatalf("%v", out)
	}
	w.finds("teo", "#support-approvals", "", "Voided", "somebody reported that the earlier run of it happened", "This has happened already")
	w.finds("sam", "#support", root, "results: executed", "a person reported that it happened", "RF-9")
	if runs := w.runs(); len(runs) != 1 {
		t.Errorf("it ran %d times", len(runs))
	}
}

// Once the agent was told that nobody knows, nothing is asked again for that call.
func TestNothingIsAskedAgainOnceTheAgentWasTold(t *testing.T) {
	w := newWorkbench(t)
	root, asked := w.lost("#support")
	w.clicks("teo", "#support-approvals", asked, actLeave)
	w.finds("sam", "#support", root, "results: unknown")
	told := w.finds("teo", "#support-approvals", "", "Did this happen?", "The agent was told that nobody knows", "ask the agent anew in the thread")
	if told.has(actAskAgain) || told.has(actLeave) {
		t.Errorf("what can't be done any more is offered: %s", told.raw)
	}
}

// Every reason for which nothing can be said of a run has words that fit.
func TestDeniedReports(t *testing.T) {
	s := seen{Sight: unknownSight()}
	for _, code := range []approvers.Code{approvers.DeniedNotMember, approvers.DeniedGuest, approvers.DeniedNothing, approvers.DeniedResolved, approvers.DeniedReturned, approvers.DeniedUnidentified} {
		words := deniedReport(&approvers.Denied{Code: code, By: "T0001/U0002", At: noon}, s).plain.String()
		if slices.ContainsFunc([]string{"waits for", "decide"}, func(w string) bool { return strings.Contains(words, w) && code != approvers.DeniedUnidentified }) {
			t.Errorf("%s: %s", code, words)
		}
	}
	s.Request = nil
	if words := deniedReport(&approvers.Denied{Code: approvers.DeniedNotRequester}, s).plain.String(); words != "Nothing was changed: only those who asked for this can say what became of it." {
		t.Error(words)
	}
}
