package bot

import (
	"testing"

	"countersign/approvers"
	"countersign/bot/bottest"
)

// A tool server's claims appear on the card as its own, and do not affect the policy's risk.
func TestClaims(t *testing.T) {
	h := newHarness(t, func(h *harness) {
		remote := bottest.Tool("crm.send", `{"type":"object","properties":{"to":{"type":"string"}}}`, approvers.Unprotected)
		remote.Description, remote.Claims = "Sends a letter.", bottest.EveryClaim()
		h.tools["crm.send"] = remote
		h.policy.Tools = append(h.policy.Tools, approvers.ToolPolicy{Name: "crm.send", Risk: approvers.High, Confirm: true})
		h.policy.Approvers[1].CanApprove = append(h.policy.Approvers[1].CanApprove, "crm.send")
	})
	h.says("sam", "#support", "@bot please\ncall crm.send {\"to\":\"Ann\"}")
	h.finds("teo", "#support-approvals", "", "Sends a letter.",
		"Its source says, and nobody vouches for it, that it changes something, can destroy something, acts again when it runs again, reaches the world outside.")
}
