package bot

import (
	"context"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"countersign/bot/render/control"
	"countersign/internal/testkit"
	"countersign/store"
)

// cramped is a store whose disk can be full.
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

// If people act while the disk is full, the bot refuses each action, and tells the person at the place of the action.
// When the disk has space, every action succeeds.
func TestFullDisk(t *testing.T) {
	testkit.SkipIfShort(t)
	t.Parallel()
	disk := &cramped{}
	h := newHarness(t, func(h *harness) {
		h.ackWait = 3 * time.Second // shorter than usual, because the bot does not acknowledge the clicks on a full disk
		h.wrap = func(s store.Store) store.Store { disk.Store = s; return disk }
	})
	h.says("sam", "#support", refundCall)
	card := h.finds("teo", "#support-approvals", "", "Waits for Team Lead")
	click := func(action string) map[string]any {
		return h.call("POST", "/people/teo/actions", map[string]any{"channel": "#support-approvals", "ts": card.TS, "action_id": action})
	}
	h.until("a click is acknowledged in time", func() bool { return click(control.ActReject)["ok"] == true })
	form := h.opened("teo", control.ActReject)
	h.quiet()

	disk.full.Store(true)
	refused := func(what string, out map[string]any) {
		t.Helper()
		if out["ok"] == true {
			t.Errorf("%s was acknowledged although it could not be stored: %v", what, out)
		}
	}
	out := h.submits("teo", form, map[string]any{control.FieldReason: "too late"})
	if text := fmt.Sprint(out); !strings.Contains(text, "This was not sent. The disk on which I store everything is full") {
		t.Errorf("the submitted form says %s", text)
	}
	refused("a form", out)
	h.call("POST", fmt.Sprintf("/people/teo/views/%s/close", form["id"]), map[string]any{"all": true})

	refused("a click", click(control.ActApprove))
	h.finds("teo", "#support-approvals", "", "Nothing was done: I could not store your click.")
	refused("a click that opens a form", click(control.ActReject))
	h.until("the modal says why there is no form", func() bool {
		return strings.Contains(fmt.Sprint(h.call("GET", "/people/teo/views", nil)), "Nothing was done: I could not store your click.")
	})
	h.says("sam", "#support", "@bot call search_orders {}")
	h.finds("sam", "#support", "", "I could not store what you wrote.")
	h.says("sam", "#support", "@bot hello?")
	command := h.call("POST", "/people/sam/commands", map[string]any{"channel": "#support", "command": "/countersign", "text": "pending"})
	if text := fmt.Sprint(command); !strings.Contains(text, "Nothing was done. The disk on which I store everything is full") {
		t.Errorf("a command is answered with %s", text)
	}
	if runs := h.runs(); len(runs) != 0 {
		t.Errorf("this ran while the disk was full: %q", runs)
	}

	disk.full.Store(false)
	h.until("it runs", func() bool {
		if len(h.runs()) == 0 {
			click(control.ActApprove) // click again, in case the first click was not acknowledged in time
		}
		return len(h.runs()) > 0
	})
	h.quiet()
	told := 0
	for _, p := range h.sees("sam", "#support", "") {
		if strings.Contains(p.Text, "I could not store what you wrote.") {
			told++
		}
	}
	if told != 1 {
		t.Errorf("sam was told %d times that the disk is full", told)
	}
}
