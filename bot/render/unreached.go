package render

import (
	"strings"

	"countersign/approvers"
)

// refusedCards puts Slack's reasons for refusing a card into words. Its codes stand at the end of a cause.
var refusedCards = []struct{ code, words string }{
	{"missing_scope", "I lack a permission in Slack"},
	{"not_in_channel", "I am not in the channel for it"},
	{"channel_not_found", "Slack does not find the channel for it"},
	{"is_archived", "the channel for it is archived"},
	{"restricted_action", "I may not write in the channel for it"},
	{"user_disabled", "the accounts are deactivated"},
}

// refusedCard says why Slack shows a card to nobody.
func refusedCard(cause string) string {
	for _, r := range refusedCards {
		if strings.Contains(cause, r.code) {
			return r.words
		}
	}
	return "Slack refuses it"
}

// unreached tells the requesters that nobody can see the card of their request, who is told instead, and what is tried.
// It is empty for a request that people can see.
func unreached(v View, r approvers.Request) *RichText {
	stage := v.stageTitle(r.CurrentStage())
	if r.ReachesNobody() {
		p := Say("Nobody could be shown this, because " + refusedCard(r.Unreached.Cause) + ". My operator has been told, and I keep trying. ")
		return p.Strong(stage + v.joined(r)).Say(" can decide it on my Home tab.")
	}
	p := new(RichText)
	for _, lead := range r.Joined {
		if r.Unreached.Added(r, lead) {
			return p.Say(" I could not show it to " + stage + ", because " + refusedCard(r.Unreached.Cause) + ", so I asked " + v.title(lead) + " at once. My operator has been told.")
		}
	}
	return p
}
