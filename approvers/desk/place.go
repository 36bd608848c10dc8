package desk

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"time"

	"countersign/approvers"
	"countersign/store"
)

// A place is a channel, by Slack's id, or by #name where Slack does not say more. store.SettingPlace holds one for each that the bot lost: it was removed
// from it, or the channel was archived or deleted. What is open there goes to each person by direct message at once. What comes later is tried there first,
// so that it goes there again as soon as the bot is back, whether Slack tells of that or not.
type place struct {
	Lost  bool      `json:"lost"`
	Since time.Time `json:"since"`
	Cause string    `json:"cause"`
	Told  bool      `json:"told"` // the operator was
	// Shared says that the bot could write there, but people of other organisations would read it: what stood there is taken away.
	Shared bool     `json:"shared,omitempty"`
	Names  []string `json:"names,omitempty"` // other names of it that were taken for lost
	Left   []string `json:"left,omitempty"`  // surfaces whose messages stand there as they were then
}

func readPlace(r store.Reader, name string) (p place, s store.Setting, err error) {
	s, err = r.Setting(store.SettingPlace + name)
	if errors.Is(err, store.ErrNotFound) {
		return p, store.Setting{Key: store.SettingPlace + name}, nil
	}
	if err != nil {
		return p, s, err
	}
	if err := json.Unmarshal(s.Value, &p); err != nil {
		return p, s, fmt.Errorf("place %s: %w", name, err)
	}
	return p, s, nil
}

// changePlace reads a place, changes it and writes it.
func (t *tx) changePlace(name string, change func(*place)) error {
	p, s, err := readPlace(t, name)
	if err != nil {
		return err
	}
	change(&p)
	if s.Value, err = json.Marshal(p); err != nil {
		return fmt.Errorf("place %s: %w", name, err)
	}
	return t.PutSetting(s)
}

// PlaceLost takes in that the bot can't write in a channel any more. named are the names by which the policy may know it.
func (d *Desk) PlaceLost(ctx context.Context, inbox, channel, cause string, named ...string) error {
	err := d.update(ctx, "place lost", func(t *tx) error {
		if err := t.settle(inbox, ""); err != nil {
			return err
		}
		wanted := slices.ContainsFunc(append(named, channel), t.policy.Names)
		return t.placeLost(channel, cause, wanted)
	})
	if errors.Is(err, ErrHandled) {
		return nil
	}
	return err
}

// PlaceShared takes in that no card may stand in a channel, because people of other organisations read it. What waits there is taken away, and goes to
// each person by direct message. named are the names by which the policy may know it.
func (d *Desk) PlaceShared(ctx context.Context, inbox, channel string, named ...string) error {
	err := d.update(ctx, "place shared", func(t *tx) error {
		if err := t.settle(inbox, ""); err != nil {
			return err
		}
		p, _, err := readPlace(t, channel)
		if err != nil || p.Lost {
			return err
		}
		if slices.ContainsFunc(append(named, channel), t.policy.Names) {
			t.note(slog.LevelWarn, "a channel is shared with another organisation, so no card stands there; what waits goes to each person by direct message. "+
				"If cards may stand there, name it in shared_channels of the policy", "channel", channel)
		}
		if err := t.changePlace(channel, func(p *place) {
			*p = place{Lost: true, Told: true, Shared: true, Since: t.now, Cause: "it is shared with another organisation"}
		}); err != nil {
			return err
		}
		return t.SetTimer(store.Timer{Kind: store.TimerPlace, Ref: channel, Due: t.now})
	})
	if errors.Is(err, ErrHandled) {
		return nil
	}
	return err
}

// placeLost notes that a place is lost, and has what is open there moved. The operator is told once, as soon as it matters to anything.
func (t *tx) placeLost(name, cause string, matters bool) error {
	p, _, err := readPlace(t, name)
	if err != nil || p.Lost && (p.Told || !matters) {
		return err
	}
	if matters {
		t.note(slog.LevelError, "the bot can't write in a channel any more; what waits there for people goes to each of them by direct message. Invite it there again, or change the policy",
			"channel", name, "cause", cause)
	}
	if !p.Lost {
		if err := t.SetTimer(store.Timer{Kind: store.TimerPlace, Ref: name, Due: t.now}); err != nil {
			return err
		}
	}
	return t.changePlace(name, func(p *place) {
		if !p.Lost {
			*p = place{Lost: true, Since: t.now, Cause: cause, Left: p.Left}
		}
		p.Told = p.Told || matters
	})
}

// PlaceBack takes in that the bot can write in a channel again.
func (d *Desk) PlaceBack(ctx context.Context, inbox, channel string) error {
	err := d.update(ctx, "place back", func(t *tx) error {
		if err := t.settle(inbox, ""); err != nil {
			return err
		}
		return errors.Join(t.placeBack(channel), t.headAgain())
	})
	if errors.Is(err, ErrHandled) {
		return nil
	}
	return err
}

// placeBack has new cards go to a place again. What stands there from before shows again how things are: no button is left that does nothing.
func (t *tx) placeBack(name string) error {
	p, _, err := readPlace(t, name)
	if err != nil || !p.Lost {
		return err
	}
	t.note(slog.LevelInfo, "the bot can write in a channel again", "channel", name, "lost", p.Since)
	if err := t.changePlace(name, func(p *place) { *p = place{} }); err != nil {
		return err
	}
	if err := t.ClearTimer(store.TimerPlace, name); err != nil {
		return err
	}
	for _, other := range p.Names {
		if err := t.placeBack(other); err != nil {
			return err
		}
	}
	for _, id := range p.Left {
		s, err := t.Surface(id)
		if errors.Is(err, store.ErrNotFound) {
			continue // erased since
		}
		if err != nil {
			return err
		}
		if s.State != store.SurfaceUnreachable || s.TS == "" {
			continue
		}
		s.State, s.LastError = store.SurfaceWanted, ""
		s.Want++
		if err := t.PutSurface(s); err != nil {
			return err
		}
		if err := t.showNow(s); err != nil {
			return err
		}
	}
	return nil
}

// postedIn notes that the bot could post in a channel, whatever it was told before.
func (t *tx) postedIn(s store.Surface) error {
	named, channel := strings.CutPrefix(s.To, toChannel)
	switch {
	case channel:
		return errors.Join(t.placeBack(s.Channel), t.placeBack(named))
	case strings.HasPrefix(s.To, toConversation):
		if p, _, err := readPlace(t, s.Channel); err != nil || p.Shared {
			return err // the asker's thread stays where they asked
		}
		return t.placeBack(s.Channel)
	}
	return nil
}

// Vacate moves what is open in a place that the bot lost. It may stop between any two of its transactions, and begins anew then: what was moved is not open
// there any more.
func (d *Desk) Vacate(ctx context.Context, timer store.Timer) error {
	err := d.openRequests(ctx, "vacate", func(t *tx, r approvers.Request) error { return t.vacate(timer.Ref, r.ID, r.Turn) })
	if err != nil {
		return err
	}
	return d.update(ctx, "vacate", func(t *tx) error {
		return errors.Join(t.vacateOthers(timer.Ref), t.ClearTimer(store.TimerPlace, timer.Ref))
	})
}

// vacateOthers moves what waits for people and is no request.
func (t *tx) vacateOthers(name string) error {
	for _, kind := range []store.TimerKind{store.TimerLeave, store.TimerInquiry, store.TimerElicit} {
		timers, err := t.Timers(kind, mostUnsettled)
		if err != nil {
			return err
		}
		for _, timer := range timers {
			call := timer.Ref
			if kind == store.TimerLeave {
				e, err := t.Execution(timer.Ref)
				if err != nil {
					return err
				}
				call = e.Call
			}
			if kind == store.TimerElicit {
				q, err := t.Elicitation(timer.Ref)
				if err != nil {
					return err
				}
				call = q.Call
			}
			c, err := t.Call(call)
			if err != nil {
				return err
			}
			if err := t.vacate(name, timer.Ref, c.Turn); err != nil {
				return err
			}
		}
	}
	return nil
}

// vacate moves the surfaces of something that are in a place and still matter.
func (t *tx) vacate(name string, refs ...string) error {
	p, _, err := readPlace(t, name)
	if err != nil || !p.Lost {
		return err // it is back already
	}
	for _, ref := range refs {
		surfaces, err := t.SurfacesOf(ref)
		if err != nil {
			return err
		}
		for _, s := range surfaces {
			if p.Shared && !strings.HasPrefix(s.To, toChannel) {
				continue // the conversation is where it was asked
			}
			if s.Channel != name && s.To != toChannel+name || s.State == store.SurfaceUnreachable || s.State == store.SurfaceGone {
				continue
			}
			life, err := t.life(s)
			if err != nil {
				return err
			}
			if !life.matters {
				continue
			}
			if err := t.placeLost(name, p.Cause, true); err != nil {
				return err
			}
			if to, ok := strings.CutPrefix(s.To, toChannel); ok && to != name {
				if err := t.alias(name, to, p.Cause); err != nil {
					return err
				}
			}
			if err := t.moveAway(name, s, p.Cause); err != nil {
				return err
			}
		}
	}
	return nil
}

// alias takes another name of a place for lost too, so that the operator is not told of the same place again.
func (t *tx) alias(name, other, cause string) error {
	if p, _, err := readPlace(t, other); err != nil || p.Lost {
		return err
	}
	if err := t.changePlace(other, func(p *place) { *p = place{Lost: true, Since: t.now, Cause: cause, Told: true} }); err != nil {
		return err
	}
	return t.changePlace(name, func(p *place) { p.Names = append(p.Names, other) })
}

// moveAway gives a surface up at a place that the bot lost, and shows it elsewhere. Its message is remembered there; in a place that is only closed to cards
// it is deleted.
func (t *tx) moveAway(name string, s store.Surface, cause string) error {
	p, _, err := readPlace(t, name)
	if err != nil {
		return err
	}
	stands := s.TS != "" && s.State != store.SurfaceVanished
	if p.Shared {
		if stands {
			s.Old, s.TS, s.Hash = s.TS, "", ""
			s.Round++
		}
		if err := errors.Join(t.ClearTimer(store.TimerRepost, s.ID), t.giveUp(s, cause)); err != nil || !stands {
			return err
		}
		return t.showNow(s)
	}
	if stands {
		if err := t.changePlace(name, func(p *place) { p.Left = append(p.Left, s.ID) }); err != nil {
			return err
		}
	}
	if err := t.ClearTimer(store.TimerRepost, s.ID); err != nil {
		return err
	}
	return t.giveUp(s, cause)
}

// giveUp marks a surface unreachable, and shows it elsewhere where there is such a place.
func (t *tx) giveUp(s store.Surface, cause string) error {
	s.State, s.LastError = store.SurfaceUnreachable, cause
	if err := t.PutSurface(s); err != nil {
		return err
	}
	if err := t.shownAsWanted(s); err != nil {
		return err
	}
	return t.elsewhere(s)
}
