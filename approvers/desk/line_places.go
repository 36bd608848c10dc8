package desk

import (
	"slices"
	"strings"

	"countersign/approvers"
)

// leaveLines takes a request that moved out of the lines that count it where it has nothing to be decided any more. It reports whether it still
// waits but has left a place: then its card has to be shown where it goes now.
func (t *tx) leaveLines(before, r approvers.Request) (approvers.Request, bool, error) {
	if len(r.Lines) == 0 {
		return r, false, nil
	}
	var here []string
	if r.State == approvers.Pending {
		here = t.places(r)
	}
	var kept []string
	for _, address := range r.Lines {
		stays := slices.Contains(here, address)
		if stays {
			kept = append(kept, address)
		}
		_, err := t.changeLine(address, func(l *line) {
			switch {
			case !stays:
				l.remove(r.ID)
			case before.Bundled() && !r.Bundled():
				l.split(r.ID)
			}
		})
		if err != nil {
			return r, false, err
		}
	}
	moved := len(kept) < len(r.Lines) && r.State == approvers.Pending
	r.Lines = kept
	return r, moved, nil
}

// recount brings the lines of a request up to a policy with another cap, or other places for cards.
func (t *tx) recount(id string) error {
	r, err := t.Request(id)
	if err != nil || r.State != approvers.Pending {
		return err
	}
	r, moved, err := t.leaveLines(r, r) // which also shows whose turn has come by a higher cap
	if err != nil {
		return err
	}
	if moved {
		if err := t.PutRequest(r); err != nil {
			return err
		}
		return t.wantCard(r)
	}
	if t.policy.Caps.Approver == 0 {
		return nil
	}
	shown := t.places(r)
	if len(shown) == len(r.Lines) {
		return nil
	}
	for _, address := range shown { // its card was open before there was a cap
		if slices.Contains(r.Lines, address) {
			continue
		}
		if _, err := t.changeLine(address, func(l *line) { l.add(r, false) }); err != nil {
			return err
		}
		r.Lines = append(slices.Clone(r.Lines), address)
	}
	return t.PutRequest(r)
}

// places are where a pending request is put before people: where its stage's people read their cards, at the leads whom escalation added, and
// at those who stand in for somebody.
func (t *tx) places(r approvers.Request) []string {
	out := t.addresses(r)
	for _, i := range r.Invited {
		if to := toUser + i.Who.User(); i.Away && !slices.Contains(out, to) {
			out = append(out, to)
		}
	}
	for _, lead := range r.Joined {
		if to := toRole + lead; !slices.Contains(out, to) {
			out = append(out, to)
		}
	}
	return out
}

// behind are the roles whose cards go to a channel, each member by direct message: they are told of a line that the channel can't show.
func (t *tx) behind(channel string) (places []string) {
	for _, role := range t.policy.Approvers {
		if strings.HasPrefix(channel, toChannel) && t.cardAddress(role.Name) == channel {
			places = append(places, toRole+role.Name)
		}
	}
	return places
}

// unseen reports whether a request waits in line wherever it is put before people: nobody has a card of it yet.
func (t *tx) unseen(r approvers.Request) (bool, error) {
	if len(r.Lines) == 0 {
		return false, nil
	}
	for _, address := range t.places(r) {
		l, _, err := readLine(t.Tx, address)
		if err != nil || !l.waits(r.ID) {
			return false, err
		}
	}
	return true, nil
}
