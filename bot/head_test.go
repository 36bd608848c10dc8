package bot

import (
	"crypto/rand"
	"strings"
	"testing"
	"time"

	"countersign/approvers"
	"countersign/internal/demo/workspace"
)

// sealing returns a harness whose bot posts its audit heads to a channel.
func sealing(t *testing.T, channel string) (h *harness, seal func()) {
	t.Helper()
	h = newHarness(t, func(h *harness) { h.policy.Audit = approvers.AuditPost{Channel: channel, Every: time.Minute} })
	text, err := approvers.NewSealKey(rand.Reader, "countersign-here")
	if err != nil {
		t.Fatal(err)
	}
	key, err := approvers.ParseSealKey(text)
	if err != nil {
		t.Fatal(err)
	}
	return h, func() {
		t.Helper()
		for n := 1; n > 0; {
			if n, err = h.workflow.History.Seal(t.Context(), key); err != nil {
				t.Fatal(err)
			}
		}
	}
}

// If the response to the post of a head is lost, the bot finds the posted message, and does not post the head twice.
func TestHeadIsPostedOnce(t *testing.T) {
	t.Parallel()
	h, seal := sealing(t, "#support-approvals")
	h.says("sam", "#support", refundCall)
	h.finds("teo", "#support-approvals", "", "Waits for Team Lead")
	h.quiet()
	if err := h.slack.Inject(workspace.Fault{Fault: workspace.FaultLostResponse, Method: "chat.postMessage", Times: 1}); err != nil {
		t.Fatal(err)
	}
	seal()
	h.quiet()
	h.stop()
	h.start()
	seal()
	h.quiet()
	heads := 0
	for _, m := range botMessages(h, "teo", "#support-approvals", "") {
		if strings.Contains(m.raw, "countersign-head:") {
			heads++
		}
	}
	if heads != 1 {
		t.Errorf("%d heads are in the channel", heads)
	}
}

// If the channel does not exist, or the bot is not a member, the bot tells the operator once. The head is posted as
// soon as the bot is a member.
func TestHeadsChannelIsClosed(t *testing.T) {
	t.Parallel()
	for _, channel := range []string{"#finance", "#no-such-channel"} {
		t.Run(channel, func(t *testing.T) {
			h, seal := sealing(t, channel)
			h.says("sam", "#support", refundCall)
			h.finds("teo", "#support-approvals", "", "Waits for Team Lead")
			h.quiet()
			seal()
			h.quiet()
			if n := h.told(); n != 1 {
				t.Errorf("the operator was told %d times:\n%s", n, h.log)
			}
			if channel == "#finance" {
				h.does("teo", "invite", channel, "U0BOT")
				h.finds("teo", channel, "", "Audit head 1")
			}
		})
	}
}

// If the heads' channel is archived, the bot tells the operator immediately, even if no head is due.
func TestRemovedFromTheHeadsChannel(t *testing.T) {
	t.Parallel()
	h, seal := sealing(t, "#supplier-desk")
	h.says("sam", "#support", refundCall)
	h.quiet()
	seal()
	h.quiet()
	h.does("sam", "archive", "#supplier-desk")
	h.until("the operator is told", func() bool { return h.told() == 1 })
}
