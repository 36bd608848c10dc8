package wording

import (
	"fmt"
	"strings"

	"countersign/approvers"
	"countersign/bot/render/block"
)

// refusals has texts about Slack's reasons for refusing a message. The field words has the text for people, and the
// field mend has the text for the operator. An entry applies if the cause contains the entry's code.
var refusals = []struct{ code, words, mend string }{
	{"missing_scope", "I lack a permission in Slack", "Add the scope on the app's page OAuth & Permissions, and reinstall the app"},
	{"not_in_channel", "I am not in the channel for it", "Invite the app to the channel"},
	{"channel_not_found", "Slack can't find the channel for it", "Invite the app to the channel, or name another one in the policy"},
	{"is_archived", "the channel for it is archived", "Unarchive the channel, or name another one in the policy"},
	{"restricted_action", "I may not write in the channel for it", "Let the app write there, in the channel's settings or the workspace's"},
	{approvers.NobodyThere, "there is nobody whom I can write to", "Add people to the role or the user group"},
	{"user_disabled", "the accounts are deactivated", "If a role or a user group contains the deactivated account, replace it there"},
}

// refusedCard returns the reason why Slack did not deliver a card.
func refusedCard(cause string) string {
	for _, r := range refusals {
		if strings.Contains(cause, r.code) {
			return r.words
		}
	}
	return "Slack refuses it"
}

// MendRefusal returns what an operator can do if Slack refuses a message.
func MendRefusal(cause string) string {
	for _, r := range refusals {
		if strings.Contains(cause, r.code) {
			return r.mend
		}
	}
	return "Correct the cause in Slack"
}

// unreachedNotice tells the requesters about one of two problems: Slack did not deliver the card of their request, or
// the stage no longer has enough people who can decide the request. The notice says who can decide instead, or that the
// operator knows. For any other request, the text is empty.
func (w RequestWords) unreachedNotice(r approvers.Request) *block.RichText {
	stage := w.StageTitle(r.CurrentStage())
	if approvers.HasNobodyLeft(r) {
		nobody := "Nobody in "
		if n := r.At(r.Stage); n > 0 {
			nobody = fmt.Sprintf("%d of %d agreed. Nobody else in ", n, r.CurrentStage().Quorum)
		}
		why := "their accounts are deactivated, or they may not decide it"
		switch group := r.CurrentStage().Group; {
		case r.Unreached.Empty && group != "" && len(r.CurrentStage().Or) > 0:
			why = "the user group @" + block.Name(group) + " has no members who hold one of the roles, or is disabled"
		case r.Unreached.Empty && group != "":
			why = "the user group @" + block.Name(group) + " has no members who hold the role, or is disabled"
		case r.Unreached.Empty:
			why = "there are no members, or their user group is disabled"
		}
		return block.Say(nobody).Strong(stage + w.EscalatedRoles(r)).Say(" can decide this: " + why + ". My operator has been told.")
	}
	if approvers.HasTooFew(r) {
		return block.Say(fmt.Sprintf(" It needs the approval of %d people, and only %d can give it. My operator has been told.", r.CurrentStage().Quorum, r.Unreached.Able))
	}
	if r.ReachesNobody() {
		p := block.Say("Nobody could be shown this, because " + refusedCard(r.Unreached.Cause) + ". My operator has been told, and I keep trying. ")
		return p.Strong(stage + w.EscalatedRoles(r)).Say(" can decide it on my Home tab.")
	}
	p := new(block.RichText)
	for _, lead := range r.Joined {
		if r.Unreached.Added(r, lead) {
			return p.Say(" I could not show it to " + stage + ", because " + refusedCard(r.Unreached.Cause) + ", so I asked " + w.Title(lead) + " at once. My operator has been told.")
		}
	}
	return p
}
