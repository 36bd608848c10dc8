package bot

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"path"
	"strings"
	"sync"
	"testing"

	"countersign/approvers"
	"countersign/approvers/desk"
	"countersign/internal/workspace"
)

// twoLeads is a refund that two people of the Team Leads have to allow.
func twoLeads(w *workbench) {
	w.policy.Tools[2].Stages = []approvers.Stage{{Approver: "team-lead", Quorum: 2}}
	w.policy.Approvers[1].Members = append(w.policy.Approvers[1].Members, approvers.Member{Kind: approvers.MemberUser, Value: "U0001"})
}

// erases has an admin delete a message of the bot, and waits until the bot knows.
func (w *workbench) erases(channel string, p posted) {
	w.t.Helper()
	w.deletes("ingrid", channel, p.TS)
	w.until("the deletion was heard", func() bool {
		row, err := w.desk.Inbox(context.Background(), desk.DeletionID(channel, p.TS))
		return err == nil && !row.HandledAt.IsZero()
	})
}

// An admin deletes a card: a change of the state alone does not bring it back, a word in the asker's thread does, and the new one works.
func TestDeletedCard(t *testing.T) {
	w := newWorkbench(t, twoLeads)
	root := w.says("sam", "#support", refundCall)
	card := w.finds("teo", "#support-approvals", "", "Waits for Team Lead")
	w.quiet()
	w.erases("C0002", card)
	w.edits("sam", "#support", root, "@bot in other words")
	w.finds("sam", "#support", root, "changes nothing by itself")
	w.quiet()
	if n := len(botMessages(w, "teo", "#support-approvals", "")); n != 0 {
		t.Fatalf("%d cards; nobody has asked for it", n)
	}
	w.saysIn("sam", "#support", "hello?", root)
	anew := w.finds("teo", "#support-approvals", "", "Waits for Team Lead", "Edited since")
	w.clicks("teo", "#support-approvals", anew, actApprove)
	w.finds("teo", "#support-approvals", "", "1 of 2 agreed")
	w.quiet()
	w.saysIn("sam", "#support", "hello again", root)
	w.clicks("ada", "#support-approvals", anew, actApprove)
	w.finds("sam", "#support", root, "results: executed")
	w.quiet()
	if n := len(botMessages(w, "teo", "#support-approvals", "")); n != 1 || anew.TS == card.TS {
		t.Errorf("%d cards", n)
	}
	w.erases("C0002", anew) // it is decided: it stays away
	w.saysIn("sam", "#support", "thanks", root)
	w.finds("sam", "#support", root, "results: ")
	w.quiet()
	if n := len(botMessages(w, "teo", "#support-approvals", "")); n != 0 {
		t.Errorf("%d cards of what is decided", n)
	}
}

// A card with a thread is deleted: a word under what is left of it brings it back, and lets the thread be.
func TestDeletedCardWithAThread(t *testing.T) {
	w := newWorkbench(t)
	w.says("sam", "#support", refundCall)
	card := w.finds("teo", "#support-approvals", "", "Waits for Team Lead")
	w.quiet()
	w.saysIn("ada", "#support-approvals", "is this the broken one?", card.TS)
	w.erases("C0002", card)
	w.saysIn("teo", "#support-approvals", "where did it go?", card.TS)
	anew := w.finds("teo", "#support-approvals", "", "Waits for Team Lead")
	w.clicks("teo", "#support-approvals", anew, actApprove)
	w.finds("teo", "#support-approvals", "", "It ran")
}

// Retention takes messages away without a word. Whoever asks what waits for them gets the card again, and so does whoever asked for it.
func TestWaiting(t *testing.T) {
	w := newWorkbench(t)
	root := w.says("sam", "#support", refundCall)
	card := w.finds("teo", "#support-approvals", "", "Waits for Team Lead")
	step := w.finds("sam", "#support", root, "Waits for")
	w.quiet()
	w.commands("teo", "#support-approvals", "pending")
	w.answered("teo", "#support-approvals", "Waits for you:", "Refund for order ORD-123", "<@U0100>", "/archives/C0002/p"+strings.ReplaceAll(card.TS, ".", ""))
	w.commands("sam", "#support", "pending")
	w.answered("sam", "#support", "You asked for:", "Refund for order ORD-123", "Team Lead", "/archives/C0001/p"+strings.ReplaceAll(step.TS, ".", ""))
	w.commands("ada", "#support", "pending")
	w.answered("ada", "#support", "Nothing waits for you")
	w.quiet()
	if a, b := botMessages(w, "teo", "#support-approvals", ""), botMessages(w, "sam", "#support", root); len(a) != 1 || len(b) != 1 {
		t.Fatalf("%d cards, %d messages in the thread, although none was gone", len(a), len(b))
	}
	for channel, ts := range map[string]string{"C0002": card.TS, "C0001": step.TS} {
		if err := w.slack.Expire(channel, ts); err != nil {
			t.Fatal(err)
		}
	}
	w.commands("teo", "#support-approvals", "pending")
	w.answered("teo", "#support-approvals", "2 messages had been deleted, and comes again")
	anew := w.finds("teo", "#support-approvals", "", "✋ Waits for Team Lead")
	w.until("the thread leads to the new card", func() bool {
		return strings.Contains(w.finds("sam", "#support", root, "Waits for").raw, "p"+strings.ReplaceAll(anew.TS, ".", ""))
	})
	w.commands("teo", "#support-approvals", "pending")
	w.answered("teo", "#support-approvals", "Waits for you:", "p"+strings.ReplaceAll(anew.TS, ".", ""))
	w.clicks("teo", "#support-approvals", anew, actApprove)
	w.finds("sam", "#support", root, "results: executed")
	w.quiet()
	if a, b := botMessages(w, "teo", "#support-approvals", ""), botMessages(w, "sam", "#support", root); len(a) != 1 || len(b) != 2 {
		t.Errorf("%d cards, %d messages in the thread", len(a), len(b))
	}
}

// refuser answers for Slack where it has an answer.
type refuser struct {
	mu     sync.Mutex
	answer func(method, body string) string // Slack's error code; empty: Slack answers itself
}

func (r *refuser) refuse(answer func(method, body string) string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.answer = answer
}

func (r *refuser) RoundTrip(req *http.Request) (*http.Response, error) {
	body := ""
	if req.Body != nil {
		raw, err := io.ReadAll(req.Body)
		if err != nil {
			return nil, err
		}
		body, req.Body = string(raw), io.NopCloser(bytes.NewReader(raw))
	}
	r.mu.Lock()
	code := ""
	if r.answer != nil {
		code = r.answer(path.Base(req.URL.Path), body)
	}
	r.mu.Unlock()
	if code == "" {
		return http.DefaultTransport.RoundTrip(req)
	}
	return &http.Response{
		StatusCode: http.StatusOK, Header: http.Header{"Content-Type": {"application/json"}}, Request: req,
		Body: io.NopCloser(strings.NewReader(fmt.Sprintf(`{"ok":false,"error":%q}`, code))),
	}, nil
}

// A post whose answer is lost is found again after a card was replaced too: by the round that it was posted in. A card that can be neither changed nor
// deleted is not taken for the one that replaces it.
func TestLostPostOfAReplacedCard(t *testing.T) {
	slack := &refuser{}
	w := newWorkbench(t, twoLeads, func(w *workbench) { w.http = &http.Client{Transport: slack} })
	root := w.says("sam", "#support", refundCall)
	card := w.finds("teo", "#support-approvals", "", "Waits for Team Lead")
	w.quiet()
	w.erases("C0002", card)
	if err := w.slack.Inject(workspace.Fault{Fault: workspace.FaultLostResponse, Method: "chat.postMessage"}); err != nil {
		t.Fatal(err)
	}
	w.commands("teo", "#support-approvals", "pending")
	anew := w.finds("teo", "#support-approvals", "", "✋ Waits for Team Lead")
	w.quiet()
	slack.refuse(func(method, body string) string {
		if !strings.Contains(body, "ts="+anew.TS) {
			return ""
		}
		return map[string]string{"chat.update": "edit_window_closed", "chat.delete": "cant_delete_message"}[method]
	})
	if err := w.slack.Inject(workspace.Fault{Fault: workspace.FaultLostResponse, Method: "chat.postMessage"}); err != nil {
		t.Fatal(err)
	}
	w.clicks("teo", "#support-approvals", anew, actApprove)
	last := w.finds("teo", "#support-approvals", "", "1 of 2 agreed")
	w.quiet()
	if n := len(botMessages(w, "teo", "#support-approvals", "")); n != 2 {
		t.Errorf("%d cards", n)
	}
	w.clicks("ada", "#support-approvals", anew, actApprove)
	w.finds("ada", "#support-approvals", "", "was replaced by a newer version")
	w.clicks("ada", "#support-approvals", last, actApprove)
	w.finds("sam", "#support", root, "results: executed")
}

// A card that can't be changed any more, and whose deletion fails for a while, does not stay beside the one that replaces it: its buttons would outlive the
// request.
func TestReplacedCardIsDeletedInTheEnd(t *testing.T) {
	slack := &refuser{}
	w := newWorkbench(t, twoLeads, func(w *workbench) { w.http = &http.Client{Transport: slack} })
	root := w.says("sam", "#support", refundCall)
	card := w.finds("teo", "#support-approvals", "", "Waits for Team Lead")
	w.quiet()
	deletions := 0
	slack.refuse(func(method, body string) string {
		if !strings.Contains(body, "ts="+card.TS) {
			return ""
		}
		switch method {
		case "chat.update":
			return "edit_window_closed"
		case "chat.delete":
			if deletions++; deletions < 3 {
				return "internal_error"
			}
		}
		return ""
	})
	w.clicks("teo", "#support-approvals", card, actApprove)
	anew := w.finds("teo", "#support-approvals", "", "1 of 2 agreed")
	w.quiet()
	if n := len(botMessages(w, "teo", "#support-approvals", "")); n != 1 || anew.TS == card.TS || deletions < 3 {
		t.Errorf("%d cards after %d deletions", n, deletions)
	}
	w.clicks("ada", "#support-approvals", anew, actApprove)
	w.finds("sam", "#support", root, "results: executed")
}
