package bot

import (
	"crypto/rand"
	"encoding/json"
	"strings"
	"testing"
	"time"

	"countersign/approvers"
	"countersign/approvers/desk"
	"countersign/internal/workspace"
	"countersign/store"
)

// aHead is a head as the first key signed it, or a later one that took over.
const (
	aHead    = "countersign-3f9a61\n345\nr0sBQQ0ZQ1Z1mZ5pWQ2m2l0wqv0yqv0m2yqvJ0m2l0w=\nnumber 12\ntime 2026-03-02T11:59:58Z\nbefore 3b5d5c3712955042212316173ccf37be800dd9e1b8f8b53e2f6e0d4b7e5a2c11\n\n— countersign-3f9a61 M+rQ9dQ3bq0mF8o1L9pQm2l0wqv0yqv0m2yqvJ0m2l0wM+rQ9dQ3bq0mF8o1L9pQm2l0wqv0yqv0m2yqvJ0m2l0wr0sBQQ==\n"
	keyLines = "key countersign-3f9a61+52d1a3c0+AYJm9m2yqvJ0m2l0wM+rQ9dQ3bq0mF8o1L9pQm2l0wqv\nafter countersign-3f9a61+9e0b77aa+AYJm9m2yqvJ0m2l0wM+rQ9dQ3bq0mF8o1L9pQm2l0wqw\n"
)

func headSight(note string, records uint64) desk.Sight {
	s := sightOf(testRequest(refundArgs))
	s.Surface.Kind, s.Surface.Ref, s.Request, s.Execution, s.Call = store.SurfaceHead, "heads", nil, nil, nil
	s.Head = &store.Head{Number: 12, Size: records, Note: note}
	return s
}

// A posted head is whole in its blocks and in its text, also where one key takes over from another.
func TestHeadMessage(t *testing.T) {
	signature := strings.LastIndex(aHead, "\n— ")
	takeover := aHead[:signature] + keyLines + aHead[signature:] + aHead[signature+1:]
	for name, s := range map[string]desk.Sight{"head": headSight(aHead, 345), "head_first": headSight(aHead, 1), "head_takeover": headSight(takeover, 345)} {
		t.Run(name, func(t *testing.T) {
			m := drawn(t, s).messages[0]
			golden(t, name, m)
			blocks, err := json.Marshal(m.Blocks)
			if err != nil {
				t.Fatal(err)
			}
			for _, text := range []string{m.Text, string(blocks)} {
				kept, faults := approvers.KeptHeads(text)
				if len(kept) != 1 || len(faults) > 0 || kept[0].Note != s.Head.Note {
					t.Errorf("%d heads are read (%v) from\n%s", len(kept), faults, text)
				}
			}
		})
	}
}

// sealing has a workbench's heads posted to a channel.
func sealing(t *testing.T, channel string) (w *workbench, seal func()) {
	t.Helper()
	w = newWorkbench(t, func(w *workbench) { w.policy.Audit = approvers.AuditPost{Channel: channel, Every: time.Minute} })
	text, err := approvers.NewSealKey(rand.Reader, "countersign-here")
	if err != nil {
		t.Fatal(err)
	}
	key, err := approvers.ParseSealKey(text)
	if err != nil {
		t.Fatal(err)
	}
	return w, func() {
		t.Helper()
		for n := 1; n > 0; {
			if n, err = w.desk.Seal(t.Context(), key); err != nil {
				t.Fatal(err)
			}
		}
	}
}

// The answer to the post of a head is lost: it is found again, and not posted twice.
func TestHeadIsPostedOnce(t *testing.T) {
	w, seal := sealing(t, "#support-approvals")
	w.says("sam", "#support", refundCall)
	w.finds("teo", "#support-approvals", "", "Waits for Team Lead")
	w.quiet()
	if err := w.slack.Inject(workspace.Fault{Fault: workspace.FaultLostResponse, Method: "chat.postMessage", Times: 1}); err != nil {
		t.Fatal(err)
	}
	seal()
	w.quiet()
	w.stop()
	w.start()
	seal()
	w.quiet()
	heads := 0
	for _, m := range botMessages(w, "teo", "#support-approvals", "") {
		if strings.Contains(m.raw, "countersign-head:") {
			heads++
		}
	}
	if heads != 1 {
		t.Errorf("%d heads are in the channel", heads)
	}
}

// A channel that does not exist, or that the bot is not in: the operator is told once, and the head comes as soon as the bot is let in.
func TestHeadsChannelIsClosed(t *testing.T) {
	for _, channel := range []string{"#finance", "#no-such-channel"} {
		t.Run(channel, func(t *testing.T) {
			w, seal := sealing(t, channel)
			w.says("sam", "#support", refundCall)
			w.finds("teo", "#support-approvals", "", "Waits for Team Lead")
			w.quiet()
			seal()
			w.quiet()
			if n := w.told(); n != 1 {
				t.Errorf("the operator was told %d times:\n%s", n, w.log)
			}
			if channel == "#finance" {
				w.does("teo", "invite", channel, "U0BOT")
				w.finds("teo", channel, "", "Audit head 1")
			}
		})
	}
}

// The bot is removed from the heads' channel: the operator is told at once, although nothing is to be posted there now.
func TestRemovedFromTheHeadsChannel(t *testing.T) {
	w, seal := sealing(t, "#supplier-desk")
	w.says("sam", "#support", refundCall)
	w.quiet()
	seal()
	w.quiet()
	w.does("sam", "archive", "#supplier-desk")
	w.until("the operator is told", func() bool { return w.told() == 1 })
}
