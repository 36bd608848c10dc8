package workflow

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"countersign/approvers"
	"countersign/store"
)

// cardQueue limits the undecided cards that are open at one address. store.SettingCardQueue holds a queue for each
// address at which the policy's cap was ever in force. Further requests wait in Held without a card. They are pending
// like any other: their clocks run, and an escalation shows them to the lead. A request stores the addresses of the
// queues that count it, so that it leaves them however it ends.
type cardQueue struct {
	Open  []queuedCard `json:"open,omitempty"`
	Held  []queuedCard `json:"held,omitempty"`
	Round int          `json:"round,omitempty"` // rises each time the queue begins to fill, so that people get a new notice
}

// queuedCard is one card of a queue: a request, or the requests of a bundle.
type queuedCard struct {
	Bundle   string   `json:"bundle,omitempty"`
	Requests []string `json:"requests"`
}

// cardQueueNotice returns the reference of a queue's notice: the address and the round.
func cardQueueNotice(address string, round int) string { return address + " " + strconv.Itoa(round) }

// noticed parses a reference of cardQueueNotice.
func noticed(ref string) (address string, round int) {
	if i := strings.LastIndexByte(ref, ' '); i >= 0 {
		round, _ = strconv.Atoi(ref[i+1:]) // other refs have no round
		address = ref[:i]
	}
	return address, round
}

// readCardQueue reads an address's queue, or an empty one.
func readCardQueue(r store.Reader, address string) (cardQueue, store.Setting, error) {
	var l cardQueue
	s, err := r.Setting(store.SettingCardQueue + address)
	if errors.Is(err, store.ErrNotFound) {
		return l, store.Setting{Key: store.SettingCardQueue + address}, nil
	}
	if err != nil {
		return l, s, err
	}
	if err := json.Unmarshal(s.Value, &l); err != nil {
		return l, s, fmt.Errorf("line at %s: %w", address, err)
	}
	return l, s, nil
}

// changeCardQueue changes an address's queue, shows the requests that leave it, and updates the notice. It returns the
// new queue.
func (t *tx) changeCardQueue(address string, change func(*cardQueue)) (cardQueue, error) {
	l, s, err := readCardQueue(t.Tx, address)
	if err != nil {
		return l, err
	}
	before := cardQueue{Open: slices.Clone(l.Open), Held: slices.Clone(l.Held), Round: l.Round}
	change(&l)
	turn := l.admit(t.policy.Caps.Approver)
	if l.equal(before) {
		return l, nil
	}
	if len(before.Held) == 0 && len(l.Held) > 0 {
		l.Round++
	}
	if s.Value, err = json.Marshal(l); err != nil {
		return l, fmt.Errorf("line at %s: %w", address, err)
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
		return l, t.newOutboxMessage(store.OutboxMessage{Kind: store.OutboxCardQueue, Ref: cardQueueNotice(address, l.Round), To: address})
	case !slices.EqualFunc(before.Held, l.Held, queuedCard.equal):
		return l, t.changedRef(cardQueueNotice(address, l.Round))
	}
	return l, nil
}

// enqueueCard counts a request at an address before its card is shown there. It reports whether the request has to wait
// in the queue; approving it then needs a typed value. A request that is already counted there does not wait again, and
// a bundle's requests wait together.
func (t *tx) enqueueCard(id, address string) (waits bool, err error) {
	most := t.policy.Caps.Approver
	r, err := t.Request(id)
	if err != nil {
		return false, err
	}
	counted := slices.Contains(r.QueuedAt, address)
	if most == 0 && !counted {
		return false, nil
	}
	l, err := t.changeCardQueue(address, func(l *cardQueue) {
		if !counted {
			l.add(r, len(l.Held) > 0 || len(l.Open) >= most)
		}
	})
	waits = l.waits(id)
	if err != nil || counted {
		return waits, err
	}
	if waits && r.StepUp == "" {
		r.StepUp = fmt.Sprintf("It had to wait in line behind %s", cards(len(l.Open)))
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

// wantQueued shows a request at an address, or puts it in the queue if as many cards are open there as the policy
// allows.
func (t *tx) wantQueued(r approvers.Request, to string) error {
	if t.policy.Caps.Approver == 0 && len(r.QueuedAt) == 0 {
		return t.wantThere(r, to)
	}
	if waits, err := t.enqueueCard(r.ID, to); err != nil || waits {
		return err
	}
	return t.wantThere(r, to)
}

// wantThere shows a request at an address: as an escalation to a lead, in its bundle, or on a card of its own.
func (t *tx) wantThere(r approvers.Request, to string) error {
	if !slices.Contains(t.addresses(r), to) {
		for _, lead := range r.Joined {
			if to == toRole+lead {
				return t.wantAt(r, store.OutboxEscalation, to, lead)
			}
		}
	}
	if r.Bundled() {
		return t.wantBundle(r, to)
	}
	return t.wantAt(r, store.OutboxCard, to, "")
}

// showNextQueued shows a request that leaves the queue of an address.
func (t *tx) showNextQueued(id, address string) error {
	r, err := t.Request(id)
	if err != nil || r.State != approvers.Pending {
		return err
	}
	if err := t.wantThere(r, address); err != nil {
		return err
	}
	return t.linkCard(id) // removes the note in the asker's thread that it waits in the queue
}
