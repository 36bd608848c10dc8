package workflow

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"countersign/approvers"
	"countersign/approvers/workflow/settings"
	"countersign/store"
)

// changeCardQueue changes the card queue of an address, shows the requests that leave the queue, and updates the notice
// about the queue. changeCardQueue returns the new queue.
func (t cardsTx) changeCardQueue(address string, change func(*settings.CardQueue)) (settings.CardQueue, error) {
	l, s, err := settings.ReadCardQueue(t.Tx, address)
	if err != nil {
		return l, err
	}
	before := settings.CardQueue{Open: slices.Clone(l.Open), Held: slices.Clone(l.Held), Round: l.Round} // Turns is left out, because Turns changes only together with Open
	change(&l)
	turn := l.Admit(t.policy.Caps.Approver)
	if l.Equal(before) {
		return l, nil
	}
	if len(before.Held) == 0 && len(l.Held) > 0 {
		l.Round++
	}
	if s.Value, err = json.Marshal(l); err != nil {
		return l, fmt.Errorf("card queue at %s: %w", address, err)
	}
	if err := t.PutSetting(s); err != nil {
		return l, err
	}
	for _, c := range turn {
		for _, id := range c.Requests {
			if err := t.showNextQueued(id, address); err != nil {
				return l, err
			}
		}
	}
	switch {
	case l.Round != before.Round:
		return l, t.outbox.add(store.OutboxMessage{Kind: store.OutboxCardQueue, Ref: settings.CardQueueNotice(address, l.Round), To: address})
	case !slices.EqualFunc(before.Held, l.Held, settings.QueuedCard.Equal):
		return l, t.outbox.changedRef(settings.CardQueueNotice(address, l.Round))
	}
	return l, nil
}

// enqueueCard adds a request to the card queue of an address, before the address shows the request's card. If the
// request has to wait, waits is true. The approval of a request that had to wait needs a typed value. If the queue has
// the request already, enqueueCard does not add it again. The requests of a bundle wait together.
func (t cardsTx) enqueueCard(id, address string) (waits bool, err error) {
	most := t.policy.Caps.Approver
	r, err := t.Request(id)
	if err != nil {
		return false, err
	}
	counted := slices.Contains(r.QueuedAt, address)
	if most == 0 && !counted {
		return false, nil
	}
	l, err := t.changeCardQueue(address, func(l *settings.CardQueue) {
		if !counted {
			l.Add(r, len(l.Held) > 0 || len(l.Open) >= most)
		}
	})
	waits = l.Waits(id)
	if err != nil || counted {
		return waits, err
	}
	if waits && r.StepUp == "" {
		r.StepUp = fmt.Sprintf("It was queued behind %s", cards(len(l.Open)))
	}
	r.QueuedAt = append(slices.Clone(r.QueuedAt), address)
	return waits, t.PutRequest(r)
}

func cards(n int) string {
	if n == 1 {
		return "another undecided card"
	}
	return fmt.Sprintf("%d other undecided cards", n)
}

// wantQueued shows a request at an address. If the number of open cards at the address has reached the policy's cap,
// wantQueued puts the request in the address's queue instead.
func (t cardsTx) wantQueued(r approvers.Request, to string) error {
	if t.policy.Caps.Approver == 0 && len(r.QueuedAt) == 0 {
		return t.wantThere(r, to)
	}
	if waits, err := t.enqueueCard(r.ID, to); err != nil || waits {
		return err
	}
	return t.wantThere(r, to)
}

// wantThere shows a request at an address. The request is shown as an escalation to a lead, as a part of its bundle, or
// with its own card. A person who has a card gets no other card.
func (t cardsTx) wantThere(r approvers.Request, to string) error {
	if strings.HasPrefix(to, store.ToUser) {
		cards, err := t.reposts.cardsOf(r)
		if err != nil {
			return err
		}
		if has, err := t.hadCard(cards, to); err != nil || has {
			return err
		}
	}
	if !slices.Contains(t.addresses(r), to) {
		for _, lead := range r.Joined {
			if to == store.ToRole+lead {
				return t.outbox.wantAt(r, store.OutboxEscalation, to, lead)
			}
		}
	}
	if r.Bundled() {
		return t.wantBundle(r, to)
	}
	return t.outbox.wantAt(r, store.OutboxCard, to, "")
}

// showNextQueued shows a request that leaves the queue of an address.
func (t cardsTx) showNextQueued(id, address string) error {
	r, err := t.Request(id)
	if err != nil || r.State != approvers.Pending {
		return err
	}
	if err := t.wantThere(r, address); err != nil {
		return err
	}
	// The requester's thread then links to the card, and no longer says that the request waits in the queue.
	return t.linkCard(id)
}

// leaveCardQueues removes a request from the queues of addresses whose people can't decide the request any more. If the
// request is pending and has left a queue, the second result is true. Then the request's card must be shown at its
// other addresses.
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
	dequeued := len(kept) < len(r.QueuedAt) && r.State == approvers.Pending
	r.QueuedAt = kept
	return r, dequeued, nil
}

// recountCardQueues updates a request's queues after a policy change. The policy may have changed the cap on open
// cards, or the addresses of cards.
func (t cardsTx) recountCardQueues(id string) error {
	r, err := t.Request(id)
	if err != nil || r.State != approvers.Pending {
		return err
	}
	r, dequeued, err := t.leaveCardQueues(r, false) // if the cap is higher now, leaveCardQueues also shows the next requests
	if err != nil {
		return err
	}
	if dequeued {
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
	for _, address := range shown { // adds a request whose card was open before the cap existed
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

// t.places returns the addresses of a pending request's cards. These are the addresses of the stage's approvers, of
// stand-ins, and of leads that an escalation added.
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

// queueRecipients returns the addresses of the roles whose cards go to a channel. If the channel can't show the notice
// about its queue, the members of these roles get the notice by direct message.
func (t cardsTx) queueRecipients(channel string) (places []string) {
	for _, role := range t.policy.Approvers {
		if strings.HasPrefix(channel, store.ToChannel) && t.cardAddress(role.Name) == channel {
			places = append(places, store.ToRole+role.Name)
		}
	}
	return places
}

// t.unseen reports whether a request waits in a queue at each of its addresses. In this case, nobody can see the
// request's card.
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
