package wording

import (
	"slices"
	"strings"

	"github.com/slack-go/slack"

	"countersign/approvers"
	"countersign/approvers/workflow/view"
	"countersign/bot/render/argument"
	"countersign/bot/render/block"
	"countersign/bot/render/control"
	"countersign/store"
)

// Version is the version of an outbox message that is drawn. The buttons of the message name the version.
type Version struct {
	Message store.OutboxMessage
	print   string // fingerprint of the content
}

// Token returns a button token for this version.
func (m Version) Token(ref string) string {
	return control.ButtonToken{Ref: ref, Message: m.Message.ID, Post: m.Message.Posts + 1, Print: m.print}.String()
}

// OwnCopy reports whether the message goes to one person.
func (m Version) OwnCopy() bool { return strings.HasPrefix(m.Message.To, store.ToUser) }

// OwnerHasApproved reports whether the owner of this copy has already approved. The owner can't approve again, because
// each person's approval counts only once.
func (m Version) OwnerHasApproved(r approvers.Request) bool {
	user, own := strings.CutPrefix(m.Message.To, store.ToUser)
	return own && slices.ContainsFunc(r.ValidApprovals(), func(d approvers.Decision) bool { return d.By.User() == user })
}

// HasPassedOn reports whether the owner of this copy changed the arguments in a role outside the current stage.
func (m Version) HasPassedOn(r approvers.Request) bool {
	user, own := strings.CutPrefix(m.Message.To, store.ToUser)
	if !own {
		return false
	}
	asked := append(r.CurrentStage().Roles(), r.Joined...)
	return slices.ContainsFunc(r.Edits, func(e approvers.Edit) bool { return e.By.User() == user && !slices.Contains(asked, e.Role) })
}

// TakeBack returns the button that takes an approval back.
func (m Version) TakeBack(r approvers.Request) slack.BlockElement {
	return block.Button(control.ActTakeBack, "Take back…", m.Token(r.ID), slack.StyleDefault)
}

// Withdraw returns the button that withdraws a call. The button's label ends with the given number, so that the labels
// of different calls differ.
func (m Version) Withdraw(c view.Call, number string) slack.BlockElement {
	what := InFull(c.Call.Preview, c.Call.Tool, []byte(c.Call.Args), c.Call.Secrets)
	again := block.Confirm("Withdraw this call?", block.Clip(what, maxCallAsk)+"\n\nIt will not run, and the agent is told that you withdrew it.", "Withdraw", "Keep waiting", slack.StyleDanger)
	return block.Button(control.ActWithdraw, "Withdraw"+number, m.Token(c.Request.ID), slack.StyleDefault).WithConfirm(again)
}

// Revoke returns the button that revokes a grant.
func (m Version) Revoke(g approvers.Grant) slack.BlockElement {
	again := block.Confirm("Revoke this grant?", "Such calls wait for approval again. A running call is not stopped.", "Revoke", "Keep it", slack.StyleDanger)
	return block.Button(control.ActRevoke, "Revoke", m.Token(g.ID), slack.StyleDefault).WithConfirm(again)
}

// Reveal returns the button that shows masked values to approvers, if the request has masked values.
func (m Version) Reveal(r approvers.Request) []slack.BlockElement {
	if len(argument.SecretsIn(r.Args, r.Secrets)) == 0 {
		return nil
	}
	return []slack.BlockElement{block.Button(control.ActReveal, "Reveal…", m.Token(r.ID), slack.StyleDefault)}
}
