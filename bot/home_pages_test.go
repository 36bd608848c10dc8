package bot

import (
	"context"
	"fmt"
	"testing"
	"time"

	"countersign/approvers"
	"countersign/bot/bottest"
	"countersign/bot/render"
	"countersign/store"
)

// A Home tab is fast with a thousand rows, and so is each of its pages.
func TestHomeWithThousand(t *testing.T) {
	const waiting = 1000
	h := newHarness(t, func(h *harness) { h.once = true })
	err := h.store.Update(context.Background(), func(tx store.Tx) error {
		for i := range waiting {
			r := bottest.Request(bottest.RefundArgs)
			r.ID, r.Call, r.Turn, r.Conversation, r.Execution = fmt.Sprintf("req_%04d", i), fmt.Sprint("call_", i), fmt.Sprint("turn_", i), fmt.Sprint("conv_", i), fmt.Sprint("exec_", i)
			r.CreatedAt = time.Now().Add(time.Duration(i) * time.Millisecond)
			r.ExpiresAt = time.Now().Add(time.Hour)
			for _, err := range []error{
				tx.PutRequest(r), tx.PutCall(store.Call{ID: r.Call, Turn: r.Turn, Conversation: r.Conversation, Request: r.ID}),
				tx.PutTurn(approvers.Turn{ID: r.Turn, Conversation: r.Conversation}), tx.PutConversation(store.Conversation{ID: r.Conversation, Channel: "C0001", Name: "support"}),
			} {
				if err != nil {
					return err
				}
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	h.looks("teo", "Waits for you: 1000", "Page 1 of 125") // who and what Slack knows is asked once
	var best time.Duration
	for page := 2; page < 7; page++ {
		began := time.Now()
		h.clicksHome("teo", render.PartWaiting, render.ActHome+"_next")
		h.atHome("teo", fmt.Sprintf("Page %d of 125", page))
		if took := time.Since(began); best == 0 || took < best {
			best = took
		}
	}
	began := time.Now()
	who, all, _, err := h.bot.pendingFor(context.Background(), "U0002", h.policy)
	theirs, _ := sorted(all, who, h.policy)
	read := time.Since(began)
	if err != nil || len(theirs) != waiting {
		t.Fatal(len(theirs), err)
	}
	t.Logf("rows=%d read=%.1fms click_to_page=%.1fms (the best of five)", waiting, read.Seconds()*1e3, best.Seconds()*1e3)
	if best > 3*time.Second {
		t.Errorf("a page took %s", best)
	}
}
