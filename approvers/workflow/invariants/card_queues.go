package invariants

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"countersign/approvers"
	"countersign/store"
)

// CardQueue is the stored card queue of an address. Open has the cards that are open at the address. Held has the cards
// that wait in the queue.
type CardQueue struct {
	Open, Held []struct {
		Bundle   string
		Requests []string
	}
	Round int
}

// IDs lists the requests with open cards, and the requests that wait in the queue.
func (l CardQueue) IDs() (open, held []string) {
	for _, c := range l.Open {
		open = append(open, c.Requests...)
	}
	for _, c := range l.Held {
		held = append(held, c.Requests...)
	}
	return open, held
}

// CardQueueAt reads the card queue of an address. If the address has no card queue, the result is empty.
func CardQueueAt(r store.Reader, address string) (l CardQueue, err error) {
	s, err := r.Setting(store.SettingCardQueue + address)
	if errors.Is(err, store.ErrNotFound) {
		return l, nil
	}
	if err != nil {
		return l, err
	}
	return l, json.Unmarshal(s.Value, &l)
}

// CardQueues returns an error if a pending request is neither shown nor in a card queue. CardQueues also compares the
// addresses that a request stores with the card queues at these addresses.
func CardQueues(r store.Reader) error {
	open, err := r.OpenRequests(store.RequestCursor{}, most)
	if err != nil {
		return err
	}
	var faults []error
	counts := map[string][]string{}
	for _, req := range open {
		if req.State != approvers.Pending {
			if len(req.QueuedAt) > 0 {
				faults = append(faults, fmt.Errorf("request %s is %s, but still names the card queues at %v", req.ID, req.State, req.QueuedAt))
			}
			continue
		}
		shown, err := isShown(r, req)
		if err != nil {
			return err
		}
		for _, address := range req.QueuedAt {
			counts[address] = append(counts[address], req.ID)
			l, err := CardQueueAt(r, address)
			if err != nil {
				return err
			}
			_, held := l.IDs()
			shown = shown || slices.Contains(held, req.ID)
		}
		if !shown {
			faults = append(faults, fmt.Errorf("request %s (%s) has no card, and does not wait in a card queue; its record names the card queues at %v and the bundle %q", req.ID, req.Tool, req.QueuedAt, req.Bundle))
		}
	}
	for address, ids := range counts {
		faults = append(faults, cardQueueAddsUp(r, address, ids))
	}
	return errors.Join(faults...)
}

func isShown(r store.Reader, req approvers.Request) (bool, error) {
	cards, err := r.OutboxMessagesOf(req.ID)
	if err != nil {
		return false, err
	}
	if slices.ContainsFunc(cards, func(s store.OutboxMessage) bool {
		return s.Kind == store.OutboxCard || s.Kind == store.OutboxEscalation
	}) {
		return true, nil
	}
	others, err := r.OutboxMessagesOf(req.Turn)
	return slices.ContainsFunc(others, func(s store.OutboxMessage) bool {
		return s.Kind == store.OutboxBundle && req.Bundled() && s.Bundle == req.Bundle
	}), err
}

// cardQueueAddsUp compares the requests in a card queue with the requests that store the queue's address. If requests
// wait in the queue, a card must be open, and the queue must have a notice.
func cardQueueAddsUp(r store.Reader, address string, ids []string) error {
	l, err := CardQueueAt(r, address)
	if err != nil {
		return err
	}
	open, held := l.IDs()
	all := slices.Sorted(slices.Values(append(slices.Clone(open), held...)))
	slices.Sort(ids)
	if !slices.Equal(all, ids) {
		return fmt.Errorf("the card queue at %s holds %v; the requests that name it are %v", address, all, ids)
	}
	if len(held) == 0 {
		return nil
	}
	if len(open) == 0 {
		return fmt.Errorf("%d requests wait in the card queue at %s although no card is open there", len(held), address)
	}
	notices, err := r.OutboxMessagesOf(fmt.Sprint(address, " ", l.Round))
	if err != nil || len(notices) == 0 {
		return fmt.Errorf("%d requests wait in the card queue at %s, but the queue has no notice (%w)", len(held), address, err)
	}
	return nil
}
