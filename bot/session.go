package bot

import (
	"context"
	"errors"

	"countersign/approvers"
	"countersign/approvers/workflow"
	"countersign/bot/render"
	"countersign/store"
)

// sessionStopped is the event for a click on Slack's own stop button of an agent.
const sessionStopped = "agent_session_stopped"

// aboutAgent reports whether an event is about the agent's own area in Slack, and not about a message.
func (e event) aboutAgent() bool {
	return e.opened() || e.Type == sessionStopped && e.channelID() != "" && e.userID() != ""
}

// stopSession stops the agent's work in a thread after a click on Slack's stop button there.
func (b *Bot) stopSession(ctx context.Context, row store.Inbox, e envelope) error {
	me, err := b.whoAmI(ctx)
	if err != nil {
		return err
	}
	who, err := b.users.Who(ctx, e.Event.userID(), false)
	if err != nil {
		return err
	}
	turn, err := b.Workflow.TurnAt(ctx, me.Team, e.Event.channelID(), e.Event.ThreadTS)
	if err == nil && turn == "" && e.Event.dm() { // the top level of a direct message is one conversation
		turn, err = b.Workflow.TurnAt(ctx, me.Team, e.Event.channelID(), "")
	}
	if err != nil {
		return err
	}
	err = b.Workflow.Halt(ctx, workflow.Click{Inbox: row.ID, At: row.ReceivedAt, Who: who, Turn: turn, Channel: e.Event.channelID()})
	var d *approvers.Denied
	if !errors.As(err, &d) {
		return err
	}
	if d.Code != approvers.DeniedNothing && d.Code != approvers.DeniedNotFound { // otherwise it has ended in the meantime
		b.replyEphemeral(ctx, ephemeralReply{user: e.Event.userID(), channel: e.Event.channelID(), thread: e.Event.ThreadTS}, render.DeniedAsker(d, approvers.ChannelRef{DM: e.Event.dm()}))
	}
	return nil
}
