package bot

import (
	"testing"

	"countersign/approvers"
	"countersign/approvers/desk"
)

// everyClaim is what a source says that says as much as it can.
func everyClaim() desk.Claims {
	yes, no := true, false
	return desk.Claims{Title: "Look something up", ReadOnly: &no, Destructive: &yes, Idempotent: &no, OpenWorld: &yes}
}

// What a tool's source says of its nature stands on the card as its words, and is no risk of the policy's.
func TestClaims(t *testing.T) {
	w := newWorkbench(t, func(w *workbench) {
		remote := tool("crm.send", `{"type":"object","properties":{"to":{"type":"string"}}}`, approvers.Unprotected)
		remote.Description, remote.Claims = "Sends a letter.", everyClaim()
		w.tools["crm.send"] = remote
		w.policy.Tools = append(w.policy.Tools, approvers.ToolPolicy{Name: "crm.send", Risk: approvers.High, Confirm: true})
		w.policy.Approvers[1].CanApprove = append(w.policy.Approvers[1].CanApprove, "crm.send")
	})
	w.says("sam", "#support", "@bot please\ncall crm.send {\"to\":\"Ann\"}")
	w.finds("teo", "#support-approvals", "", "Sends a letter.",
		"Its source says, and nobody vouches for it, that it changes something, can destroy something, acts again when it runs again, reaches the world outside.")

	s := sightOf(testRequest(refundArgs))
	d, _, err := draw(scene{Sight: s, url: home, about: about{description: "Sends a letter.", claims: everyClaim().Words()}})
	if err != nil {
		t.Fatal(err)
	}
	withinLimits(t, d.messages[0])
	golden(t, "card_claims", d.messages[0])
}
