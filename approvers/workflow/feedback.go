package workflow

import (
	"context"
	"encoding/json"
	"fmt"

	"countersign/approvers"
	"countersign/approvers/workflow/settings"
)

// AddFeedback records a person's rating of the answer that ended a turn. Each person who may use the agent can rate an
// answer, and can change the rating later.
func (w *Turns) AddFeedback(ctx context.Context, c Click, good bool) error {
	return w.click(ctx, "rate", c, func(t *tx) (*approvers.Denied, error) {
		turn, denied, err := t.turns.askersTurn(c)
		if denied != nil || err != nil {
			return denied, err
		}
		if turn.State != approvers.TurnAnswered {
			return &approvers.Denied{Code: approvers.DeniedNothing}, nil
		}
		rated, before, ok := turn.AddFeedback(c.Who.ID, good, t.now)
		switch {
		case !ok:
			return &approvers.Denied{Code: approvers.DeniedFull}, nil
		case before != nil && *before == good:
			return nil, nil // the person clicked the same rating again
		}
		if err := t.PutTurn(rated); err != nil {
			return nil, err
		}
		return nil, t.turns.countFeedback(turn.Agent, before, good)
	})
}

// countFeedback counts a rating. If the person has rated the answer before, the new rating replaces the earlier rating.
func (t turnsTx) countFeedback(agent string, before *bool, good bool) error {
	r, s, err := settings.ReadFeedback(t, agent)
	if err != nil {
		return err
	}
	count := func(good bool, n int) {
		if good {
			r.Good += n
		} else {
			r.Poor += n
		}
	}
	if before != nil {
		count(*before, -1)
	}
	count(good, 1)
	if s.Value, err = json.Marshal(r); err != nil {
		return fmt.Errorf("ratings: %w", err)
	}
	return t.PutSetting(s)
}
