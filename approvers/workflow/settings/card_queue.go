package settings

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"countersign/approvers"
	"countersign/store"
)

// CardQueue limits the undecided cards that are open at one address. The store has a queue for each address that got
// cards while the policy had a cap on open cards. When the cap is reached, further requests wait in Held without a
// card. A waiting request is pending: its deadlines run, and an escalation shows the request to the lead. Each request
// stores the addresses of the queues that have it, in Open or in Held. When the request ends, it is removed from these
// queues.
type CardQueue struct {
	Open  []QueuedCard         `json:"open,omitempty"`
	Held  []QueuedCard         `json:"held,omitempty"`
	Round int                  `json:"round,omitempty"` // increases each time an empty queue gets its first waiting card, so that people get a new notice
	Turns []approvers.PersonID `json:"turns,omitempty"` // the requesters of the cards; the one whose card was opened last is at the end
}

// QueuedCard is one card of a queue. The card shows a request, or the requests of a bundle.
type QueuedCard struct {
	Bundle    string             `json:"bundle,omitempty"`
	Requests  []string           `json:"requests"`
	Requester approvers.PersonID `json:"requester,omitempty"` // the person or the client that caused the card; empty: an earlier version of Countersign queued the card
}

// CardQueueNotice returns the Ref of the notice about a queue. The Ref contains the address and the round.
func CardQueueNotice(address string, round int) string { return address + " " + strconv.Itoa(round) }

// ParseCardQueueNotice returns the address and the round in a Ref from CardQueueNotice.
func ParseCardQueueNotice(ref string) (address string, round int) {
	if i := strings.LastIndexByte(ref, ' '); i >= 0 {
		round, _ = strconv.Atoi(ref[i+1:]) // zero if the ref has no round
		address = ref[:i]
	}
	return address, round
}

// ReadCardQueue reads the queue of an address. If the store has no queue for the address, the result is empty.
func ReadCardQueue(r store.Reader, address string) (CardQueue, store.Setting, error) {
	var l CardQueue
	s, err := r.Setting(store.SettingCardQueue + address)
	if errors.Is(err, store.ErrNotFound) {
		return l, store.Setting{Key: store.SettingCardQueue + address}, nil
	}
	if err != nil {
		return l, s, err
	}
	if err := json.Unmarshal(s.Value, &l); err != nil {
		return l, s, fmt.Errorf("card queue at %s: %w", address, err)
	}
	return l, s, nil
}

// Add adds a request. If waits is true, the request's card goes to the end of the queue. If waits is false, the card is
// open. If the queue already has the card of the request's bundle, Add adds the request to the bundle's card.
func (l *CardQueue) Add(r approvers.Request, waits bool) {
	if r.Bundled() {
		for _, cards := range [][]QueuedCard{l.Open, l.Held} {
			for i, c := range cards {
				if c.Bundle == r.Bundle {
					cards[i].Requests = append(slices.Clone(c.Requests), r.ID)
					return
				}
			}
		}
	}
	c := QueuedCard{Requests: []string{r.ID}, Requester: r.Facts.Asker}
	if r.Bundled() {
		c.Bundle = r.Bundle
	}
	if waits {
		l.Held = append(l.Held, c)
	} else {
		l.open(c)
	}
}

func (l *CardQueue) open(c QueuedCard) {
	l.Open = append(l.Open, c)
	l.Turns = append(slices.DeleteFunc(slices.Clone(l.Turns), func(who approvers.PersonID) bool { return who == c.Requester }), c.Requester)
}

// Admit moves waiting cards to the open cards. The parameter most is the maximum number of open cards. If most is zero,
// Admit moves all waiting cards. Admit returns the cards that it moved.
func (l *CardQueue) Admit(most int) (turn []QueuedCard) {
	for len(l.Held) > 0 && (most == 0 || len(l.Open) < most) {
		i := 0
		if most > 0 {
			i = l.next()
		}
		turn = append(turn, l.Held[i])
		l.open(l.Held[i])
		l.Held = slices.Delete(slices.Clone(l.Held), i, i+1)
	}
	l.Turns = slices.DeleteFunc(slices.Clone(l.Turns), func(who approvers.PersonID) bool {
		has := func(c QueuedCard) bool { return c.Requester == who }
		return !slices.ContainsFunc(l.Open, has) && !slices.ContainsFunc(l.Held, has)
	})
	return turn
}

// l.next returns the index in Held of the card that leaves the queue first. The method chooses the requester with the
// fewest open cards, so that a requester with many cards does not delay the cards of other people. If several
// requesters have equally few open cards, the method chooses the requester whose last card was opened first. The result
// is the oldest card of the chosen requester.
func (l *CardQueue) next() (place int) {
	open := map[approvers.PersonID]int{}
	for _, c := range l.Open {
		open[c.Requester]++
	}
	for i, c := range l.Held {
		best := l.Held[place].Requester
		if cmp.Or(cmp.Compare(open[c.Requester], open[best]), cmp.Compare(slices.Index(l.Turns, c.Requester), slices.Index(l.Turns, best))) < 0 {
			place = i
		}
	}
	return place
}

// Waits reports whether a request waits in the queue.
func (l CardQueue) Waits(id string) bool {
	return slices.ContainsFunc(l.Held, func(c QueuedCard) bool { return slices.Contains(c.Requests, id) })
}

// Waiting counts the requests that wait in the queue.
func (l CardQueue) Waiting() int {
	n := 0
	for _, c := range l.Held {
		n += len(c.Requests)
	}
	return n
}

// Remove removes a request from its card. If the card then has no requests, Remove also removes the card.
func (l *CardQueue) Remove(id string) {
	l.Open, l.Held = without(l.Open, id), without(l.Held, id)
}

func without(cards []QueuedCard, id string) []QueuedCard {
	var out []QueuedCard
	for _, c := range cards {
		if i := slices.Index(c.Requests, id); i >= 0 {
			c.Requests = slices.Delete(slices.Clone(c.Requests), i, i+1)
		}
		if len(c.Requests) > 0 {
			out = append(out, c)
		}
	}
	return out
}

// Split gives a request of a bundle its own card. If the bundle's card is open, the new card is open too.
func (l *CardQueue) Split(id string) {
	l.Open, l.Held = apart(l.Open, id), apart(l.Held, id)
}

func apart(cards []QueuedCard, id string) []QueuedCard {
	var out []QueuedCard
	for _, c := range cards {
		i := slices.Index(c.Requests, id)
		if i < 0 || c.Bundle == "" {
			out = append(out, c)
			continue
		}
		if c.Requests = slices.Delete(slices.Clone(c.Requests), i, i+1); len(c.Requests) > 0 {
			out = append(out, c)
		}
		out = append(out, QueuedCard{Requests: []string{id}, Requester: c.Requester})
	}
	return out
}

func (c QueuedCard) Equal(o QueuedCard) bool {
	return c.Bundle == o.Bundle && slices.Equal(c.Requests, o.Requests)
}

func (l CardQueue) Equal(o CardQueue) bool {
	return slices.EqualFunc(l.Open, o.Open, QueuedCard.Equal) && slices.EqualFunc(l.Held, o.Held, QueuedCard.Equal)
}
