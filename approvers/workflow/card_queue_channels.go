package workflow

import (
	"slices"
	"strings"

	"countersign/approvers"
	"countersign/approvers/workflow/settings"
	"countersign/store"
)

// leaveCardQueues removes a request from the queues of addresses where it can no longer be decided. It reports whether
// the request is still pending but has left an address; its card must then be shown elsewhere.
func (t cardsTx) leaveCardQueues(r approvers.Request, unbundled bool) (approvers.Request, bool, error) {
	if len(r.QueuedAt) == 0 {
		return r, false, nil
	}
	var here []string
	if r.State == approvers.Pending {
		here = t.places(r)
	}
	var kept []string
	for _, address := range r.QueuedAt {
		stays := slices.Contains(here, address)
		if stays {
			kept = append(kept, address)
		}
		_, err := t.changeCardQueue(address, func(l *settings.CardQueue) {
			switch {
			case !stays:
				l.Remove(r.ID)
			case unbundled:
				l.Split(r.ID)
			}
		})
		if err != nil {
			return r, false, err
		}
	}
	moved := len(kept) < len(r.QueuedAt) && r.State == approvers.Pending
	r.QueuedAt = kept
	return r, moved, nil
}

// recountCardQueues updates the queues of a request for a policy with another cap or other card addresses.
func (t cardsTx) recountCardQueues(id string) error {
	r, err := t.Request(id)
	if err != nil || r.State != approvers.Pending {
		return err
	}
	r, moved, err := t.leaveCardQueues(r, false) // a higher cap also shows the next requests
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
	if len(shown) == len(r.QueuedAt) {
		return nil
	}
	for _, address := range shown { // its card was open before the cap existed
		if slices.Contains(r.QueuedAt, address) {
			continue
		}
		if _, err := t.changeCardQueue(address, func(l *settings.CardQueue) { l.Add(r, false) }); err != nil {
			return err
		}
		r.QueuedAt = append(slices.Clone(r.QueuedAt), address)
	}
	return t.PutRequest(r)
}

// places returns the addresses of a pending request's cards: those of its stage's people, of leads that escalation
// added, and of stand-ins.
func (t cardsTx) places(r approvers.Request) []string {
	out := t.addresses(r)
	for _, i := range r.Invited {
		if to := store.ToUser + i.Who.User(); i.Away && !slices.Contains(out, to) {
			out = append(out, to)
		}
	}
	for _, lead := range r.Joined {
		if to := store.ToRole + lead; !slices.Contains(out, to) {
			out = append(out, to)
		}
	}
	return out
}

// queueRecipients returns the addresses of the roles whose cards go to a channel. Their members are notified of the
// queue by direct message if the channel can't show the notice.
func (t cardsTx) queueRecipients(channel string) (places []string) {
	for _, role := range t.policy.Approvers {
		if strings.HasPrefix(channel, store.ToChannel) && t.cardAddress(role.Name) == channel {
			places = append(places, store.ToRole+role.Name)
		}
	}
	return places
}

// unseen reports whether a request waits in the queue at every address, so that nobody has its card.
func (t cardsTx) unseen(r approvers.Request) (bool, error) {
	if len(r.QueuedAt) == 0 {
		return false, nil
	}
	for _, address := range t.places(r) {
		l, _, err := settings.ReadCardQueue(t.Tx, address)
		if err != nil || !l.Waits(r.ID) {
			return false, err
		}
	}
	return true, nil
}
