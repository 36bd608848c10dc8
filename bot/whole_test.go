package bot

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"countersign/approvers"
	"countersign/bot/bottest"
	"countersign/bot/render/argument"
	"countersign/bot/render/block"
	"countersign/bot/render/control"
	"countersign/internal/testkit"
	"countersign/store"
)

// hugeLines is the number of lines of the longest arguments in these tests.
const hugeLines = 2450

// turns presses a button in a person's form, and waits until the form shows other text.
func (h *harness) turns(user, action string, words ...string) map[string]any {
	h.t.Helper()
	modal := h.opened(user, control.ActArguments)
	if out := h.call("POST", "/people/"+user+"/actions", map[string]any{"view_id": modal["id"], "action_id": action}); out["ok"] != true {
		h.t.Fatalf("%v", out)
	}
	h.until(fmt.Sprintf("the form shows %q", words), func() bool {
		modal = h.opened(user, control.ActArguments)
		raw, _ := json.Marshal(modal)
		for _, word := range words {
			if !strings.Contains(string(raw), word) {
				return false
			}
		}
		return true
	})
	return modal
}

// A person reads arguments with more than 100,000 displayed characters completely, page by page. The arguments can be
// approved only on the last page, and only by the person who saw that page. The shown pages are stored.
func TestHugeArguments(t *testing.T) {
	testkit.SkipIfShort(t)
	t.Parallel()
	h := newHarness(t)
	var body strings.Builder
	for i := range hugeLines {
		fmt.Fprintf(&body, "line-%05d \u202e\u202e\u202e\u202e\u202e", i)
	}
	args := `{"order_id":"ORD-1","reason":"` + body.String() + `"}`
	if n := block.Width(argument.Text([]byte(args))); n < 100_000 || len(args) > approvers.MaxArgs {
		t.Fatalf("%d characters are not huge, or %d bytes are too many", n, len(args))
	}
	h.tools["issue_refund"] = bottest.Tool("issue_refund", `{"type":"object"}`, approvers.Unprotected)
	thread := h.says("sam", "#support", "@bot hello")
	h.finds("sam", "#support", thread, "results:")
	r := h.proposes(args)
	card := h.finds("teo", "#support-approvals", "", "Waits for Team Lead", "Cut here")
	if card.has(control.ActApprove) {
		t.Error("it can be approved from a card that does not show all of it")
	}
	h.clicks("teo", "#support-approvals", card, control.ActArguments)
	modal := h.opened("teo", control.ActArguments)
	pages := 0
	if _, err := fmt.Sscanf(saidIn(modal, "Arguments, page 1 of "), "Arguments, page 1 of %d", &pages); err != nil || pages < 10 {
		t.Fatalf("%d pages (%v)", pages, err)
	}
	all := shownIn(modal)
	if modal["submit"] != nil {
		t.Error("it can be approved on the first page")
	}
	h.forgesWhole(modal, r)
	for page := 2; page <= pages; page++ {
		modal = h.turns("teo", control.ActPage+"_next", fmt.Sprintf("page %d of %d", page, pages))
		all += shownIn(modal)
		if (modal["submit"] != nil) != (page == pages) {
			t.Errorf("page %d of %d: submit is %v", page, pages, modal["submit"])
		}
	}
	if all != argument.Text([]byte(args)) {
		t.Errorf("the pages show %d characters that differ from the %d of the arguments", block.Width(all), block.Width(argument.Text([]byte(args))))
	}
	if out := h.submits("teo", modal, nil); out["ok"] != true {
		t.Fatal(out)
	}
	h.finds("teo", "#support-approvals", "", "Approved by", "It ran")
	h.wantShown(r.ID)
	if got := h.runs(); len(got) != 1 || got[0] != "issue_refund "+args {
		t.Errorf("%d runs", len(got))
	}
}

// proposes makes the model request a refund in Sam's conversation. The given arguments are too long for a message.
func (h *harness) proposes(args string) approvers.Request {
	h.t.Helper()
	h.mu.Lock()
	h.asks = args
	h.mu.Unlock()
	h.says("sam", "#support", "@bot ask")
	var r approvers.Request
	h.until("it waits", func() bool {
		err := h.store.View(context.Background(), func(s store.Reader) error {
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

// forgesWhole submits the form as if Teo had reached its last page. The forged form decides no request.
func (h *harness) forgesWhole(modal map[string]any, r approvers.Request) {
	h.t.Helper()
	token, _ := modal["private_metadata"].(string)
	claimed := token[:strings.LastIndex(token, " ")+1] + "99"
	raw, err := json.Marshal(map[string]any{
		"type": "view_submission", "trigger_id": "1.forged", "user": map[string]string{"id": "U0002"}, "team": map[string]string{"id": "T0001"},
		"view": map[string]any{"id": modal["id"], "type": "modal", "callback_id": control.ActArguments, "private_metadata": claimed, "state": map[string]any{"values": map[string]any{}}},
	})
	if err != nil {
		h.t.Fatal(err)
	}
	if _, err := h.receive(store.InboxInteraction, raw); err != nil {
		h.t.Fatal(err)
	}
	h.until("the forged approval is refused", func() bool { return len(h.denials(r.ID)) == 1 })
	if codes := h.denials(r.ID); !strings.Contains(codes[0], string(approvers.DeniedUnseen)) {
		h.t.Errorf("it is refused as %q", codes)
	}
}

// saidIn returns a view's first text that begins with the words.
func saidIn(modal map[string]any, begin string) (found string) {
	bottest.WalkBlocks(modal["blocks"], func(b map[string]any) {
		if text, _ := b["text"].(string); found == "" && strings.HasPrefix(strings.TrimSpace(text), begin) {
			found = strings.TrimSpace(text)
		}
	})
	return found
}

// shownIn returns the exact text that a view shows, in order.
func shownIn(modal map[string]any) string {
	var b strings.Builder
	blocks, _ := modal["blocks"].([]any)
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
