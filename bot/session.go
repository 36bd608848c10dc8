package bot

import (
	"context"
	"errors"

	"countersign/approvers"
	"countersign/approvers/desk"
	"countersign/store"
)

// sessionStopped is the event by which Slack tells that somebody clicked its own stop button on what the agent does.
const sessionStopped = "agent_session_stopped"

// aboutAgent reports whether an event is about the agent's own place in Slack, and not about what somebody said.
func (e event) aboutAgent() bool {
	return e.opened() || e.Type == sessionStopped && e.channelID() != "" && e.userID() != ""
}

// stopSession stops what the agent does in a thread, because somebody clicked Slack's own stop button there.
func (b *Bot) stopSession(ctx context.Context, row store.Inbox, e envelope) error {
	me, err := b.whoAmI(ctx)
	if err != nil {
		return err
	}
	who, err := b.who(ctx, e.Event.userID(), false)
	if err != nil {
		return err
	}
	turn, err := b.Desk.TurnAt(ctx, me.Team, e.Event.channelID(), e.Event.ThreadTS)
	if err == nil && turn == "" && e.Event.dm() { // the top level of a direct message is one conversation
		turn, err = b.Desk.TurnAt(ctx, me.Team, e.Event.channelID(), "")
	}
	if err != nil {
		return err
	}
	err = b.Desk.Halt(ctx, desk.Click{Inbox: row.ID, At: row.ReceivedAt, Who: who, Turn: turn, Channel: e.Event.channelID()})
	var d *approvers.Denied
	if !errors.As(err, &d) {
		return err
	}
	if d.Code != approvers.DeniedNothing && d.Code != approvers.DeniedNotFound { // it has ended by itself meanwhile
		b.tell(ctx, whisper{user: e.Event.userID(), channel: e.Event.channelID(), thread: e.Event.ThreadTS}, deniedAsker(d, approvers.Place{DM: e.Event.dm()}))
	}
	return nil
}
