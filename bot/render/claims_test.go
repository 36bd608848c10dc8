package render

import (
	"testing"

	"countersign/bot/bottest"
)

// A tool's own claims are shown on a card.
func TestClaimsOnACard(t *testing.T) {
	s := bottest.ViewModel(bottest.Request(bottest.RefundArgs))
	d, _, err := Draw(View{Model: s, WorkspaceURL: bottest.WorkspaceURL, Tool: ToolDescription{description: "Sends a letter.", claims: bottest.EveryClaim().Words()}})
	if err != nil {
		t.Fatal(err)
	}
	withinLimits(t, d.Messages[0])
	bottest.Golden(t, "card_claims", d.Messages[0])
}
