package bot

import (
	"context"
	"errors"
	"strconv"

	"countersign/approvers"
	"countersign/approvers/workflow"
	"countersign/bot/render"
)

// grants lists the grants in force that concern the person: those of the channel, and those given by the person or by
// people of their roles. Grants that they may revoke are also sent by direct message, with the button.
func (b *Bot) grants(ctx context.Context, c command, _ string) (*render.BlockBuilder, error) {
	policy := b.Workflow.Policy()
	who, err := b.member(ctx, c.User, policy)
	if err != nil {
		return nil, err
	}
	me, err := b.whoAmI(ctx)
	if err != nil {
		return nil, err
	}
	list, err := b.Workflow.Grants(ctx, who.ID)
	if err != nil {
		return nil, err
	}
	v := render.View{ViewModel: workflow.ViewModel{Policy: policy, Now: b.Now()}, WorkspaceURL: me.URL}
	var out []*render.RichText
	var send []string
	more := 0
	for _, g := range list {
		_, no := g.Grant.Revoke(approvers.DecisionContext{Policy: policy, Now: b.Now()}, who)
		mine := no == nil
		switch {
		case !mine && g.Conversation.Channel != c.Channel:
			continue
		case len(out) == render.MaxGrantsListed:
			more++
			continue
		case mine && g.Own == nil:
			send = append(send, g.Grant.ID)
		}
		out = append(out, v.GrantLine(g, mine))
	}
	switch {
	case len(out) == 0:
		return render.Paragraph(render.Say("Nothing may run without asking by anybody's permission here, and nothing by yours or that of your roles.")), nil
	case more > 0:
		out = append(out, render.Say("… and "+strconv.Itoa(more)+" more."))
	}
	if len(send) == 0 {
		return render.Paragraph(out...), nil
	}
	if err := b.Workflow.SendGrants(ctx, c.inbox, who.ID, send); err != nil && !errors.Is(err, workflow.ErrHandled) {
		return nil, err
	}
	return render.Paragraph(append(out, render.Say("What you can take back is in your direct messages with me, each with a Revoke button."))...), nil
}
