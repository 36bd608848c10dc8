package bot

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"countersign/approvers"
	"countersign/store"
)

// hugeLines is how many lines the hugest arguments have here.
const hugeLines = 2450

// turns presses a button of somebody's form and waits until it shows other words.
func (w *workbench) turns(user, action string, words ...string) map[string]any {
	w.t.Helper()
	view := w.opened(user, actArguments)
	if out := w.call("POST", "/people/"+user+"/actions", map[string]any{"view_id": view["id"], "action_id": action}); out["ok"] != true {
		w.t.Fatalf("%v", out)
	}
	w.until(fmt.Sprintf("the form shows %q", words), func() bool {
		view = w.opened(user, actArguments)
		raw, _ := json.Marshal(view)
		for _, word := range words {
			if !strings.Contains(string(raw), word) {
				return false
			}
		}
		return true
	})
	return view
}

// Arguments that take more than 100,000 characters to show are read page by page, whole, and can be approved on the last page alone, by whoever was shown it. What
// was shown is kept.
func TestHugeArguments(t *testing.T) {
	w := newWorkbench(t)
	var body strings.Builder
	for i := range hugeLines {
		fmt.Fprintf(&body, "line-%05d \u202e\u202e\u202e\u202e\u202e", i)
	}
	args := `{"order_id":"ORD-1","reason":"` + body.String() + `"}`
	if n := width(ArgumentText([]byte(args))); n < 100_000 || len(args) > approvers.MaxArgs {
		t.Fatalf("%d characters are not huge, or %d bytes are too many", n, len(args))
	}
	w.tools["issue_refund"] = tool("issue_refund", `{"type":"object"}`, approvers.Unprotected)
	thread := w.says("sam", "#support", "@bot hello")
	w.finds("sam", "#support", thread, "results:")
	r := w.proposes(args)
	card := w.finds("teo", "#support-approvals", "", "Waits for Team Lead", "Cut here")
	if card.has(actApprove) {
		t.Error("it can be approved from a card that does not show it whole")
	}
	w.clicks("teo", "#support-approvals", card, actArguments)
	view := w.opened("teo", actArguments)
	pages := 0
	if _, err := fmt.Sscanf(saidIn(view, "Page 1 of "), "Page 1 of %d", &pages); err != nil || pages < 10 {
		t.Fatalf("%d pages (%v)", pages, err)
	}
	all := shownIn(view)
	if view["submit"] != nil {
		t.Error("it can be approved on the first page")
	}
	w.forgesWhole(view, r)
	for page := 2; page <= pages; page++ {
		view = w.turns("teo", actPage+"_next", fmt.Sprintf("Page %d of %d", page, pages))
		all += shownIn(view)
		if (view["submit"] != nil) != (page == pages) {
			t.Errorf("page %d of %d: submit is %v", page, pages, view["submit"])
		}
	}
	if all != ArgumentText([]byte(args)) {
		t.Errorf("the pages show %d characters of %d, or others", width(all), width(ArgumentText([]byte(args))))
	}
	if out := w.submits("teo", view, nil); out["ok"] != true {
		t.Fatal(out)
	}
	w.finds("teo", "#support-approvals", "", "Approved by", "It ran")
	w.wantShown(r.ID)
	if got := w.runs(); len(got) != 1 || got[0] != "issue_refund "+args {
		t.Errorf("%d runs", len(got))
	}
}

// proposes has the model ask for a refund with such arguments, which are too long for a message, in Sam's conversation.
func (w *workbench) proposes(args string) approvers.Request {
	w.t.Helper()
	w.mu.Lock()
	w.asks = args
	w.mu.Unlock()
	w.says("sam", "#support", "@bot ask")
	var r approvers.Request
	w.until("it waits", func() bool {
		err := w.store.View(context.Background(), func(s store.Reader) error {
			open, err := s.OpenRequests(store.RequestCursor{}, 1)
			if len(open) == 1 {
				r = open[0]
			}
			return err
		})
		return err == nil && r.ID != ""
	})
	return r
}

// forgesWhole sends the form as if its last page were before Teo, which he has not turned to: nothing is decided by that.
func (w *workbench) forgesWhole(view map[string]any, r approvers.Request) {
	w.t.Helper()
	mark, _ := view["private_metadata"].(string)
	claimed := mark[:strings.LastIndex(mark, " ")+1] + "99"
	raw, err := json.Marshal(map[string]any{
		"type": "view_submission", "trigger_id": "1.forged", "user": map[string]string{"id": "U0002"}, "team": map[string]string{"id": "T0001"},
		"view": map[string]any{"id": view["id"], "type": "modal", "callback_id": actArguments, "private_metadata": claimed, "state": map[string]any{"values": map[string]any{}}},
	})
	if err != nil {
		w.t.Fatal(err)
	}
	if _, err := w.bot.receive(context.Background(), store.InboxInteraction, raw, time.Now()); err != nil {
		w.t.Fatal(err)
	}
	w.until("the forged approval is refused", func() bool { return len(w.denials(r.ID)) == 1 })
	if codes := w.denials(r.ID); !strings.Contains(codes[0], string(approvers.DeniedUnseen)) {
		w.t.Errorf("it is refused as %q", codes)
	}
}

// saidIn is the first text of a view that begins with some words.
func saidIn(view map[string]any, begin string) (found string) {
	walkBlocks(view["blocks"], func(b map[string]any) {
		if text, _ := b["text"].(string); found == "" && strings.HasPrefix(strings.TrimSpace(text), begin) {
			found = strings.TrimSpace(text)
		}
	})
	return found
}

// shownIn is the exact text that a view shows, in order.
func shownIn(view map[string]any) string {
	var b strings.Builder
	blocks, _ := view["blocks"].([]any)
	for _, block := range blocks {
		elements, _ := block.(map[string]any)["elements"].([]any)
		for _, e := range elements {
			if part, _ := e.(map[string]any); part["type"] == "rich_text_preformatted" {
				inner, _ := part["elements"].([]any)
				text, _ := inner[0].(map[string]any)["text"].(string)
				b.WriteString(text)
			}
		}
	}
	return b.String()
}
