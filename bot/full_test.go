package bot

import (
	"context"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"countersign/store"
)

// cramped is a store whose disk may be full.
type cramped struct {
	store.Store
	full atomic.Bool
}

func (c *cramped) Update(ctx context.Context, fn func(store.Tx) error) error {
	if c.full.Load() {
		return fmt.Errorf("%w: free some space", store.ErrFull)
	}
	return c.Store.Update(ctx, fn)
}

// What people do while the disk is full is not taken for done, and each of them is told so where they did it. When there is space again everything goes on.
func TestFullDisk(t *testing.T) {
	disk := &cramped{}
	w := newWorkbench(t, func(w *workbench) {
		w.ackWait = 500 * time.Millisecond
		w.wrap = func(s store.Store) store.Store { disk.Store = s; return disk }
	})
	w.says("sam", "#support", refundCall)
	card := w.finds("teo", "#support-approvals", "", "Waits for Team Lead")
	w.clicks("teo", "#support-approvals", card, actReject)
	form := w.opened("teo", actReject)
	w.quiet()

	disk.full.Store(true)
	refused := func(what string, out map[string]any) {
		t.Helper()
		if out["ok"] == true {
			t.Errorf("%s was acknowledged although it could not be stored: %v", what, out)
		}
	}
	out := w.submits("teo", form, map[string]any{fieldReason: "too late"})
	if text := fmt.Sprint(out); !strings.Contains(text, "This was not sent. The disk on which I write everything down is full") {
		t.Errorf("a form that was sent says %s", text)
	}
	refused("a form", out)
	w.call("POST", fmt.Sprintf("/people/teo/views/%s/close", form["id"]), map[string]any{"all": true})

	refused("a click", w.call("POST", "/people/teo/actions", map[string]any{"channel": "#support-approvals", "ts": card.TS, "action_id": actApprove}))
	w.finds("teo", "#support-approvals", "", "Nothing was done: I could not take your click in.")
	refused("a click that opens a form", w.call("POST", "/people/teo/actions", map[string]any{"channel": "#support-approvals", "ts": card.TS, "action_id": actReject}))
	w.until("the form says why it is none", func() bool {
		return strings.Contains(fmt.Sprint(w.call("GET", "/people/teo/views", nil)), "Nothing was done: I could not take your click in.")
	})
	w.says("sam", "#support", "@bot call search_orders {}")
	w.finds("sam", "#support", "", "I could not take in what you wrote.")
	w.says("sam", "#support", "@bot hello?")
	command := w.call("POST", "/people/sam/commands", map[string]any{"channel": "#support", "command": "/countersign", "text": "pending"})
	if text := fmt.Sprint(command); !strings.Contains(text, "Nothing was done. The disk on which I write everything down is full") {
		t.Errorf("a command is answered with %s", text)
	}
	if runs := w.runs(); len(runs) != 0 {
		t.Errorf("with a full disk this ran: %q", runs)
	}

	disk.full.Store(false)
	w.clicks("teo", "#support-approvals", card, actApprove)
	w.until("it runs", func() bool { return len(w.runs()) > 0 })
	w.quiet()
	told := 0
	for _, p := range w.sees("sam", "#support", "") {
		if strings.Contains(p.Text, "I could not take in what you wrote.") {
			told++
		}
	}
	if told != 1 {
		t.Errorf("sam was told %d times that nothing is taken in", told)
	}
}
