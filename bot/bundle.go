package bot

import (
	"context"
	"errors"
	"slices"

	"countersign/approvers"
	"countersign/approvers/workflow"
	"countersign/bot/directory"
	"countersign/bot/render"
)

// identifyClickerOfAll identifies a person who clicked a button for all calls of a bundle, with the user groups that
// can give authority over each of them.
func (b *Bot) identifyClickerOfAll(ctx context.Context, user string, s render.ClickTarget) (who approvers.Identity, err error) {
	var tools, groups []string
	highest := approvers.Low
	for _, c := range s.Offered() {
		highest = max(highest, directory.IdentityRisk(s.Policy, c.Request))
	}
	for _, c := range s.Offered() {
		if slices.Contains(tools, c.Request.Tool) {
			continue
		}
		tools = append(tools, c.Request.Tool)
		if who, err = b.users.Clicker(ctx, user, s.Policy, c.Request.Tool, highest, c.Request); err != nil {
			return approvers.Identity{}, err
		}
		groups = append(groups, who.Groups...)
	}
	if who.ID == "" {
		return b.users.Who(ctx, user, false)
	}
	slices.Sort(groups)
	who.Groups = slices.Compact(groups)
	return who, nil
}

// decideAll decides all calls that the clicked version offered, or none.
func (b *Bot) decideAll(ctx context.Context, r ephemeralReply, s render.ClickTarget, c workflow.Click) error {
	inTheWay, err := b.Workflow.DecideAll(ctx, c, s.Shown.Shows)
	var d *approvers.Denied
	if !errors.As(err, &d) {
		return err
	}
	b.replyEphemeral(ctx, r, render.DeniedAll(d, inTheWay, s.Policy))
	return nil
}
