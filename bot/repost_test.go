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
	"countersign/approvers/workflow"
	"countersign/bot/render/control"
	"countersign/internal/demo/workspace"
)

// twoLeads makes a refund require two people of Team Lead.
func twoLeads(h *harness) {
	h.policy.Tools[2].Stages = []approvers.Stage{{Approver: "team-lead", Quorum: 2}}
	h.policy.Approvers[1].Members = append(h.policy.Approvers[1].Members, approvers.Member{Kind: approvers.MemberUser, Value: "U0001"})
}

// erases makes an admin delete a message of the bot, and waits until the bot has handled the deletion.
func (h *harness) erases(channel string, p posted) {
	h.t.Helper()
	h.deletes("ingrid", channel, p.TS)
	h.until("the deletion was heard", func() bool {
		row, err := h.workflow.Views.Inbox(context.Background(), workflow.DeletionID(channel, p.TS))
		return err == nil && !row.HandledAt.IsZero()
	})
}

// A change of state alone does not repost a deleted card. A message in the requester's thread makes the bot repost the
// card, and people can decide on the new card.
func TestDeletedCard(t *testing.T) {
	t.Parallel()
	h := newHarness(t, twoLeads)
	root := h.says("sam", "#support", refundCall)
	card := h.finds("teo", "#support-approvals", "", "Waits for Team Lead")
	h.quiet()
	h.erases("C0002", card)
	h.edits("sam", "#support", root, "@bot in other words")
	h.finds("sam", "#support", root, "changes nothing by itself")
	h.quiet()
	if n := len(botMessages(h, "teo", "#support-approvals", "")); n != 0 {
		t.Fatalf("%d cards, although nothing asked for a new one", n)
	}
	h.saysIn("sam", "#support", "hello?", root)
	anew := h.finds("teo", "#support-approvals", "", "Waits for Team Lead", "Edited later")
	h.clicks("teo", "#support-approvals", anew, control.ActApprove)
	h.finds("teo", "#support-approvals", "", "1 of 2 agreed")
	h.quiet()
	h.saysIn("sam", "#support", "hello again", root)
	h.clicks("ada", "#support-approvals", anew, control.ActApprove)
	h.finds("sam", "#support", root, "results: executed")
	h.quiet()
	if n := len(botMessages(h, "teo", "#support-approvals", "")); n != 1 || anew.TS == card.TS {
		t.Errorf("%d cards", n)
	}
	h.erases("C0002", anew) // the request is decided, so the card is not reposted
	h.saysIn("sam", "#support", "thanks", root)
	h.finds("sam", "#support", root, "results: ")
	h.quiet()
	if n := len(botMessages(h, "teo", "#support-approvals", "")); n != 0 {
		t.Errorf("%d cards of a decided request", n)
	}
}

// If a card with a thread is deleted, a message in the remaining thread makes the bot repost the card. The thread of
// the deleted card stays in Slack.
func TestDeletedCardWithAThread(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	h.says("sam", "#support", refundCall)
	card := h.finds("teo", "#support-approvals", "", "Waits for Team Lead")
	h.quiet()
	h.saysIn("ada", "#support-approvals", "is this the broken one?", card.TS)
	h.erases("C0002", card)
	h.saysIn("teo", "#support-approvals", "where did it go?", card.TS)
	anew := h.finds("teo", "#support-approvals", "", "Waits for Team Lead")
	h.clicks("teo", "#support-approvals", anew, control.ActApprove)
	h.finds("teo", "#support-approvals", "", "It ran")
}

// Slack's retention deletes messages without an event. If an approver lists their waiting items, the bot reposts the
// card. If the requester lists their items, the bot reposts the message in the thread.
func TestWaiting(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	root := h.says("sam", "#support", refundCall)
	card := h.finds("teo", "#support-approvals", "", "Waits for Team Lead")
	step := h.finds("sam", "#support", root, "Waits for")
	h.quiet()
	h.commands("teo", "#support-approvals", "pending")
	h.answered("teo", "#support-approvals", "Waits for you:", "Refund for order ORD-123", "<@U0100>", "/archives/C0002/p"+strings.ReplaceAll(card.TS, ".", ""))
	h.commands("sam", "#support", "pending")
	h.answered("sam", "#support", "You asked for:", "Refund for order ORD-123", "Team Lead", "/archives/C0001/p"+strings.ReplaceAll(step.TS, ".", ""))
	h.commands("ada", "#support", "pending")
	h.answered("ada", "#support", "Nothing waits for you")
	h.quiet()
	if a, b := botMessages(h, "teo", "#support-approvals", ""), botMessages(h, "sam", "#support", root); len(a) != 1 || len(b) != 1 {
		t.Fatalf("%d cards, %d messages in the thread, although none was deleted", len(a), len(b))
	}
	for channel, ts := range map[string]string{"C0002": card.TS, "C0001": step.TS} {
		if err := h.slack.Expire(channel, ts); err != nil {
			t.Fatal(err)
		}
	}
	h.commands("teo", "#support-approvals", "pending")
	h.answered("teo", "#support-approvals", "2 messages had been deleted. They are being posted again: write the command once more for their links.")
	anew := h.finds("teo", "#support-approvals", "", "✋ Waits for Team Lead")
	h.until("the thread leads to the new card", func() bool {
		return strings.Contains(h.finds("sam", "#support", root, "Waits for").raw, "p"+strings.ReplaceAll(anew.TS, ".", ""))
	})
	h.commands("teo", "#support-approvals", "pending")
	h.answered("teo", "#support-approvals", "Waits for you:", "p"+strings.ReplaceAll(anew.TS, ".", ""))
	h.clicks("teo", "#support-approvals", anew, control.ActApprove)
	h.finds("sam", "#support", root, "results: executed")
	h.quiet()
	if a, b := botMessages(h, "teo", "#support-approvals", ""), botMessages(h, "sam", "#support", root); len(a) != 1 || len(b) != 2 {
		t.Errorf("%d cards, %d messages in the thread", len(a), len(b))
	}
}

// refuser is a transport that answers a call in place of Slack if answer returns a code.
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
	answer, code := r.answer, ""
	r.mu.Unlock()
	if answer != nil {
		code = answer(path.Base(req.URL.Path), body)
	}
	if code == "" {
		return http.DefaultTransport.RoundTrip(req)
	}
	return &http.Response{
		StatusCode: http.StatusOK, Header: http.Header{"Content-Type": {"application/json"}}, Request: req,
		Body: io.NopCloser(strings.NewReader(fmt.Sprintf(`{"ok":false,"error":%q}`, code))),
	}, nil
}

// A card is replaced, and the response to the new post is lost. The bot finds the new post by the round in its
// metadata. An old card that can't be edited or deleted is not confused with its replacement.
func TestLostPostOfAReplacedCard(t *testing.T) {
	t.Parallel()
	slack := &refuser{}
	h := newHarness(t, twoLeads, func(h *harness) { h.http = &http.Client{Transport: slack} })
	root := h.says("sam", "#support", refundCall)
	card := h.finds("teo", "#support-approvals", "", "Waits for Team Lead")
	h.quiet()
	h.erases("C0002", card)
	if err := h.slack.Inject(workspace.Fault{Fault: workspace.FaultLostResponse, Method: "chat.postMessage"}); err != nil {
		t.Fatal(err)
	}
	h.commands("teo", "#support-approvals", "pending")
	anew := h.finds("teo", "#support-approvals", "", "✋ Waits for Team Lead")
	h.quiet()
	slack.refuse(func(method, body string) string {
		if !strings.Contains(body, "ts="+anew.TS) {
			return ""
		}
		return map[string]string{"chat.update": "edit_window_closed", "chat.delete": "cant_delete_message"}[method]
	})
	if err := h.slack.Inject(workspace.Fault{Fault: workspace.FaultLostResponse, Method: "chat.postMessage"}); err != nil {
		t.Fatal(err)
	}
	h.clicks("teo", "#support-approvals", anew, control.ActApprove)
	last := h.finds("teo", "#support-approvals", "", "1 of 2 agreed")
	h.quiet()
	if n := len(botMessages(h, "teo", "#support-approvals", "")); n != 2 {
		t.Errorf("%d cards", n)
	}
	h.clicks("ada", "#support-approvals", anew, control.ActApprove)
	h.finds("ada", "#support-approvals", "", "there is a newer version of this message")
	h.clicks("ada", "#support-approvals", last, control.ActApprove)
	h.finds("sam", "#support", root, "results: executed")
}

// Slack refuses edits of a card, and the deletion of the card fails for some time. The bot deletes the card later.
// Without this deletion, the card would show buttons after the end of the request.
func TestReplacedCardIsDeletedInTheEnd(t *testing.T) {
	t.Parallel()
	slack := &refuser{}
	h := newHarness(t, twoLeads, func(h *harness) { h.http = &http.Client{Transport: slack} })
	root := h.says("sam", "#support", refundCall)
	card := h.finds("teo", "#support-approvals", "", "Waits for Team Lead")
	h.quiet()
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
	h.clicks("teo", "#support-approvals", card, control.ActApprove)
	anew := h.finds("teo", "#support-approvals", "", "1 of 2 agreed")
	h.quiet()
	if n := len(botMessages(h, "teo", "#support-approvals", "")); n != 1 || anew.TS == card.TS || deletions < 3 {
		t.Errorf("%d cards after %d deletions", n, deletions)
	}
	h.clicks("ada", "#support-approvals", anew, control.ActApprove)
	h.finds("sam", "#support", root, "results: executed")
}
