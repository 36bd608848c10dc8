package render

import (
	"slices"
	"strings"

	"github.com/slack-go/slack"

	"countersign/approvers"
	"countersign/approvers/workflow/view"
	"countersign/store"
)

// version is the version of an outbox message that is drawn. The buttons of the message name the version.
type version struct {
	message store.OutboxMessage
	print   string // fingerprint of the content
}

// token returns a button token for this version.
func (m version) token(ref string) string {
	return ButtonToken{Ref: ref, Message: m.message.ID, Post: m.message.Posts + 1, Print: m.print}.String()
}

// ownCopy reports whether the message goes to one person.
func (m version) ownCopy() bool { return strings.HasPrefix(m.message.To, store.ToUser) }

// ownerHasApproved reports whether the owner of this copy has already approved. The owner can't approve again, because each
// person's approval counts only once.
func (m version) ownerHasApproved(r approvers.Request) bool {
	user, own := strings.CutPrefix(m.message.To, store.ToUser)
	return own && slices.ContainsFunc(r.ValidApprovals(), func(d approvers.Decision) bool { return d.By.User() == user })
}

// hasPassedOn reports whether the owner of this copy changed the arguments in a role outside the current stage.
func (m version) hasPassedOn(r approvers.Request) bool {
	user, own := strings.CutPrefix(m.message.To, store.ToUser)
	if !own {
		return false
	}
	asked := append(r.CurrentStage().Roles(), r.Joined...)
	return slices.ContainsFunc(r.Edits, func(e approvers.Edit) bool { return e.By.User() == user && !slices.Contains(asked, e.Role) })
}

// takeBack returns the button that takes an approval back.
func (m version) takeBack(r approvers.Request) slack.BlockElement {
	return button(ActTakeBack, "Take back…", m.token(r.ID), slack.StyleDefault)
}

// withdraw returns the button that withdraws a call. The button's label ends with the given number, so that the labels
// of different calls differ.
func (m version) withdraw(c view.Call, number string) slack.BlockElement {
	what := inFull(c.Call.Preview, c.Call.Tool, []byte(c.Call.Args), c.Call.Secrets)
	again := confirm("Take it back?", Clip(what, maxCallAsk)+"\n\nIt will not run, and the agent is told that you took it back.", "Withdraw", "Keep waiting", slack.StyleDanger)
	return button(ActWithdraw, "Withdraw"+number, m.token(c.Request.ID), slack.StyleDefault).WithConfirm(again)
}

// revoke returns the button that revokes a grant.
func (m version) revoke(g approvers.Grant) slack.BlockElement {
	again := confirm("Take it back?", "Such calls wait for approval again. A running call is not stopped.", "Revoke", "Keep it", slack.StyleDanger)
	return button(ActRevoke, "Revoke", m.token(g.ID), slack.StyleDefault).WithConfirm(again)
}

// If the request has masked values, reveal returns the button that shows them to approvers.
func (m version) reveal(r approvers.Request) []slack.BlockElement {
	if len(SecretsIn(r.Args, r.Secrets)) == 0 {
		return nil
	}
	return []slack.BlockElement{button(ActReveal, "Reveal…", m.token(r.ID), slack.StyleDefault)}
}
