package bot

import (
	"context"
	"errors"
	"fmt"

	"countersign/approvers"
	"countersign/approvers/desk"
)

// Giver asks Slack who gave a grant is now. Each run under the grant asks: anew from high risk on, as for a click.
func (b *Bot) Giver(ctx context.Context, g approvers.Grant) (approvers.Identity, error) {
	policy := b.Desk.Policy()
	tool, _ := policy.Tool(g.Tool, g.Agent)
	return b.clicker(ctx, g.By.User(), policy, g.Tool, tool.Risk, &approvers.Request{Agent: g.Agent})
}

// actOnGrant does what a button on a grant stands for.
func (b *Bot) actOnGrant(ctx context.Context, w whisper, s seen, action string, c desk.Click) error {
	c.Grant = s.mark.Ref
	act := map[string]func(context.Context, desk.Click) (approvers.Grant, error){
		actRevoke: b.Desk.RevokeGrant, actAccept: b.Desk.AcceptGrant, actDecline: b.Desk.DeclineGrant,
	}[action]
	if act == nil {
		return fmt.Errorf("%w: no button on a grant does %q", errPayload, action)
	}
	g, err := act(ctx, c)
	var d *approvers.Denied
	if !errors.As(err, &d) {
		return err
	}
	b.tell(ctx, w, deniedGrant(d, g, s.Policy))
	return nil
}

// deniedGrant says to somebody why their click on a grant changed nothing.
func deniedGrant(d *approvers.Denied, g approvers.Grant, p *approvers.Policy) *prose {
	switch d.Code {
	case approvers.DeniedNotMember:
		if g.State == approvers.GrantOffered {
			return say("Nothing was changed: this is offered to ").strong(name(titleOf(p, d.Role))).say(", and you are not a member of that role.")
		}
		return say("Nothing was changed: only ").person(g.By, g.Name).say(" and people of ").strong(name(titleOf(p, d.Role))).say(" can take this back.")
	case approvers.DeniedResolved:
		out := say("Too late: ")
		switch {
		case g.State == approvers.GrantLive:
			return out.person(g.By, g.Name).say(" accepted this ").at(g.At, dayTime).say(". Your click changed nothing.")
		case d.By != "":
			return out.person(d.By, g.ClosedName).say(" ended this ").at(d.At, dayTime).say(". Your click changed nothing.")
		}
		return out.say("this has ended by itself. Your click changed nothing.")
	case approvers.DeniedNotFound:
		return say("I don't know this permission any more. It may belong to another installation, or to data that was removed.")
	case approvers.DeniedTool:
		return say("Nothing was changed: ").strong(name(titleOf(p, d.Role))).say(" may not allow this tool any more, by the policy's list.")
	case approvers.DeniedCeiling:
		return say("Nothing was changed: this tool is ").strong(d.Need.String()).say(" risk now, which is above what ").strong(name(titleOf(p, d.Role))).say(" may allow.")
	}
	return denied(d, nil, p)
}
