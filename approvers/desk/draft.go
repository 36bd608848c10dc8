package desk

import (
	"context"
	"errors"

	"countersign/approvers"
	"countersign/store"
)

// Draft is what Slack may show of a step while the model still writes it. It is no state: nothing waits for it, it has no timer, and what stands in it counts for
// nothing. It is made before anything is posted, so that whatever becomes of the process its message is found again; and what the step becomes takes it over: its
// answer, its calls, or the sentence with which the turn stops. ErrNotDue: the turn is not at the step any more.
func (d *Desk) Draft(ctx context.Context, turn string, step int) (s store.Surface, conv store.Conversation, who approvers.PersonID, err error) {
	err = d.onStep(ctx, "draft", turn, step, func(t *tx, tn approvers.Turn, c store.Conversation) error {
		conv = c
		if n := len(tn.Requesters); n > 0 {
			who = tn.Requesters[n-1]
		}
		var there bool
		var err error
		if s, there, err = t.draftOf(turn); there || err != nil {
			return err
		}
		s = store.Surface{Kind: store.SurfaceDraft, Ref: turn, Step: step + 1, To: toConversation + c.ID}
		if s.Rank, err = t.rank(s); err != nil {
			return err
		}
		s.ID, s.State, s.Want, s.Shown, s.CreatedAt = t.newID("s"), store.SurfaceShown, 1, 1, t.now
		s.Maker, s.After, s.Drafted = t.d.owner, t.d.slack.time(), true
		if err := t.PutSurface(s); err != nil {
			return err
		}
		s.Version++
		return nil
	})
	return s, conv, who, err
}

// Drafted records where Slack shows a draft, and what of it: s as it was read, with Channel and TS set.
func (d *Desk) Drafted(ctx context.Context, s store.Surface, said string) error {
	d.slack.saw(s.TS)
	return d.update(ctx, "drafted", func(t *tx) error {
		cur, err := t.Surface(s.ID)
		if err != nil || cur.Round != s.Round || !cur.Drafted || cur.TS != "" && cur.TS != s.TS {
			return err
		}
		posted := cur.TS == ""
		cur.Channel, cur.TS = s.Channel, s.TS
		if cur.Said = said; cur.Kind == store.SurfaceAnswer || cur.Kind == store.SurfaceStep {
			cur.Said = "" // its words are the message's by now
		}
		if err := t.PutSurface(cur); err != nil || !posted {
			return err
		}
		return errors.Join(t.postedIn(cur), t.goneBefore(s.Channel, s.TS))
	})
}

// draftOf finds the draft of a turn that Slack may show.
func (t *tx) draftOf(turn string) (store.Surface, bool, error) {
	surfaces, err := t.SurfacesOf(turn)
	for _, s := range surfaces {
		if s.Kind == store.SurfaceDraft && s.State == store.SurfaceShown {
			return s, true, err
		}
	}
	return store.Surface{}, false, err
}

// wantDrafted has something shown that a step became: in place of its draft, where there is one.
func (t *tx) wantDrafted(s store.Surface) error {
	draft, there, err := t.draftOf(s.Ref)
	if err != nil {
		return err
	}
	if !there {
		return t.want(s)
	}
	draft.Kind, draft.Step, draft.State = s.Kind, s.Step, store.SurfaceWanted
	draft.Want++
	if s.Kind != store.SurfaceProblem {
		draft.Said = ""
	}
	if err := t.PutSurface(draft); err != nil {
		return err
	}
	t.redrawn[redraw{ref: draft.ID}] = true
	return t.showNow(draft)
}
