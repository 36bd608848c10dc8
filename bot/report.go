package bot

import (
	"context"
	"errors"

	"countersign/approvers"
)

// answerReport tells a person why what they said of a run changed nothing, if so.
func (b *Bot) answerReport(ctx context.Context, w whisper, s seen, err error) error {
	var d *approvers.Denied
	if !errors.As(err, &d) {
		return err
	}
	b.tell(ctx, w, deniedReport(d, s))
	return nil
}

// deniedReport says to somebody why they can't say what became of a run, and who can.
func deniedReport(d *approvers.Denied, s seen) *prose {
	switch d.Code {
	case approvers.DeniedNotMember, approvers.DeniedNotRequester, approvers.DeniedTool, approvers.DeniedCeiling, approvers.DeniedGroup, approvers.DeniedSelf,
		approvers.DeniedGuest, approvers.DeniedForeign, approvers.DeniedBot, approvers.DeniedDeactivated:
		line := say("Nothing was changed: only those who asked for this")
		if r := s.Request; r != nil && r.Stage < len(r.Plan.Stages) {
			line.say(", and people of ").strong(scene{Sight: s.Sight}.stageTitle(r.Plan.Stages[r.Stage]))
		}
		return line.say(" can say what became of it.")
	case approvers.DeniedNothing:
		return say("Nothing was changed: the agent was told, or is told what comes of the new request.")
	}
	return denied(d, s.Request, s.Policy)
}
