package bot

import (
	"context"
	"errors"
	"fmt"
	"strconv"

	"countersign/approvers"
	"countersign/approvers/workflow"
	"countersign/bot/render/block"
	"countersign/bot/render/control"
	"countersign/bot/render/form"
	"countersign/bot/render/home"
)

// grantHandler handles the buttons, the form and the command about grants.
type grantHandler struct {
	*core
	identities *Identities
	ephemeral  *ephemeral
	outcomes   *outcomes
}

// clicked performs the action of a button on a grant.
func (b *grantHandler) clicked(ctx context.Context, to ephemeralReply, target form.ClickTarget, action string, click workflow.Click) error {
	click.Grant = target.Token.Ref
	act := map[string]func(context.Context, workflow.Click) (approvers.Grant, error){
		control.ActRevoke: b.Grants.Revoke, control.ActAccept: b.Grants.Accept, control.ActDecline: b.Grants.Decline,
	}[action]
	if act == nil {
		return fmt.Errorf("%w: no button on a grant does %q", errPayload, action)
	}
	g, err := act(ctx, click)
	var d *approvers.Denied
	if !errors.As(err, &d) {
		return err
	}
	b.ephemeral.reply(ctx, to, form.DeniedGrantText(d, g, target.Policy))
	return nil
}

// submitted approves a call and grants more calls.
func (b *grantHandler) submitted(ctx context.Context, to ephemeralReply, target form.ClickTarget, i interaction, click workflow.Click) error {
	a, _ := form.ParseAllowance(*target.Request, target.Policy, i.View.answers) // an error can only come from a changed policy; the workflow reports and records it
	r, err := b.Grants.Give(ctx, click, a)
	return b.outcomes.answer(ctx, to, &r, target.Policy, err)
}

// list lists the grants in force that concern the person. The list has the grants of the channel, the person's own
// grants, and the grants of people with the same roles. For each grant that the person may revoke, the person also gets
// a direct message with the button Revoke.
func (b *grantHandler) list(ctx context.Context, c command, _ string) (*block.Builder, error) {
	policy := b.Views.Policy()
	who, err := b.identities.member(ctx, c.User, policy)
	if err != nil {
		return nil, err
	}
	me, err := b.whoAmI(ctx)
	if err != nil {
		return nil, err
	}
	list, err := b.Views.Grants(ctx, who.ID)
	if err != nil {
		return nil, err
	}
	var out []*block.RichText
	var send []string
	more := 0
	for _, g := range list {
		_, no := g.Grant.Revoke(approvers.DecisionContext{Policy: policy, Now: b.Now()}, who)
		mine := no == nil
		switch {
		case !mine && g.Conversation.Channel != c.Channel:
			continue
		case len(out) == home.MaxGrantsListed:
			more++
			continue
		case mine && g.Own == nil:
			send = append(send, g.Grant.ID)
		}
		out = append(out, home.GrantLine(g, policy, me.URL, mine))
	}
	switch {
	case len(out) == 0:
		return block.Paragraph(block.Say("No calls may run without asking here, and you and your roles have allowed none elsewhere.")), nil
	case more > 0:
		out = append(out, block.Say("… and "+strconv.Itoa(more)+" more."))
	}
	if len(send) == 0 {
		return block.Paragraph(out...), nil
	}
	if err := b.Grants.Send(ctx, c.inbox, who.ID, send); err != nil && !errors.Is(err, workflow.ErrHandled) {
		return nil, err
	}
	return block.Paragraph(append(out, block.Say("I sent you direct messages about the grants that you can revoke. Each has a Revoke button."))...), nil
}
