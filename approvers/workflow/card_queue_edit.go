package workflow

import (
	"slices"

	"countersign/approvers"
)

func (c queuedCard) equal(o queuedCard) bool {
	return c.Bundle == o.Bundle && slices.Equal(c.Requests, o.Requests)
}

func (l cardQueue) equal(o cardQueue) bool {
	return slices.EqualFunc(l.Open, o.Open, queuedCard.equal) && slices.EqualFunc(l.Held, o.Held, queuedCard.equal)
}

// add puts a request at the end of the queue, or among the open cards. A bundle's further requests join its card.
func (l *cardQueue) add(r approvers.Request, waits bool) {
	if r.Bundled() {
		for _, cards := range [][]queuedCard{l.Open, l.Held} {
			for i, c := range cards {
				if c.Bundle == r.Bundle {
					cards[i].Requests = append(slices.Clone(c.Requests), r.ID)
					return
				}
			}
		}
	}
	c := queuedCard{Requests: []string{r.ID}}
	if r.Bundled() {
		c.Bundle = r.Bundle
	}
	if waits {
		l.Held = append(l.Held, c)
	} else {
		l.Open = append(l.Open, c)
	}
}

// admit moves cards from the head of the queue to the open ones while there is room, and returns them. If most is zero,
// all cards are admitted.
func (l *cardQueue) admit(most int) []queuedCard {
	n := len(l.Held)
	if most > 0 {
		n = min(n, max(0, most-len(l.Open)))
	}
	turn := l.Held[:n:n]
	l.Open, l.Held = append(l.Open, turn...), l.Held[n:]
	return turn
}

// waits reports whether a request waits in the queue.
func (l cardQueue) waits(id string) bool {
	return slices.ContainsFunc(l.Held, func(c queuedCard) bool { return slices.Contains(c.Requests, id) })
}

// waiting counts the requests that wait in the queue.
func (l cardQueue) waiting() int {
	n := 0
	for _, c := range l.Held {
		n += len(c.Requests)
	}
	return n
}

// remove takes a request off its card; a card without requests is closed.
func (l *cardQueue) remove(id string) {
	l.Open, l.Held = without(l.Open, id), without(l.Held, id)
}

func without(cards []queuedCard, id string) []queuedCard {
	var out []queuedCard
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

// split gives a request of a bundle its own card. An open card stays open.
func (l *cardQueue) split(id string) {
	l.Open, l.Held = apart(l.Open, id), apart(l.Held, id)
}

func apart(cards []queuedCard, id string) []queuedCard {
	var out []queuedCard
	for _, c := range cards {
		i := slices.Index(c.Requests, id)
		if i < 0 || c.Bundle == "" {
			out = append(out, c)
			continue
		}
		if c.Requests = slices.Delete(slices.Clone(c.Requests), i, i+1); len(c.Requests) > 0 {
			out = append(out, c)
		}
		out = append(out, queuedCard{Requests: []string{id}})
	}
	return out
}
