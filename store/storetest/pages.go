package storetest

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"time"

	"countersign/approvers"
	"countersign/store"
)

// manyRows deletes, reads and writes random rows. There are enough rows to fill several pages of a backend. manyRows
// compares every read in a transaction with the model, also after deletions in the same transaction. Several workers
// run concurrently, and may share commits. Each worker uses only its own rows. The rows of different workers are
// interleaved.
func manyRows(h *harness) {
	for _, workers := range []int{1, 6} {
		seed := uint64(time.Now().UnixNano())
		crowd(workers, func(i int) {
			w := &worker{harness: h, random: rand.New(rand.NewPCG(seed, uint64(i))), mine: fmt.Sprintf("%d of %d", i, workers), memory: newMemory()}
			if err := w.work(); err != nil {
				h.Errorf("worker %s with the seed %d: %v", w.mine, seed, err)
			}
		})
	}
}

// worker works on its own rows.
type worker struct {
	*harness
	random *rand.Rand
	mine   string
	memory *memory
}

const (
	rowGroups  = 16 // chains, conversations and other groups of a worker
	rowsOfEach = 9  // initial rows of a group
	rowLoads   = 8  // transactions of a worker
	mostGroups = 3  // groups from which a step deletes
)

// group returns the name of one of a worker's groups of rows. The groups of different workers are interleaved.
func (w *worker) group(n int) string { return fmt.Sprintf("%03d/%s", n, w.mine) }

// some returns a random group.
func (w *worker) some() string { return w.group(w.random.IntN(rowGroups)) }

// kind returns a kind of timer that only the worker uses.
func (w *worker) kind() store.TimerKind { return store.TimerKind("kind of " + w.mine) }

func (w *worker) work() error {
	for n := range rowGroups {
		if err := w.try([]step{w.append(w.group(n), rowsOfEach), w.talk(w.group(n), rowsOfEach), w.ask(w.group(n), rowsOfEach)}, false); err != nil {
			return err
		}
	}
	for range rowLoads {
		var steps []step
		for range 1 + w.random.IntN(12) {
			steps = append(steps, w.step(), w.look())
		}
		if err := w.try(steps, w.random.IntN(4) == 0); err != nil {
			return err
		}
	}
	return nil
}

// try runs steps in one transaction of the store and on the model, and compares the results.
func (w *worker) try(steps []step, fails bool) error {
	var learned, meant []string
	run := func(tx store.Tx, out *[]string) error {
		*out = nil
		for _, s := range steps {
			v, err := s.run(tx)
			*out = append(*out, told(s.name, v, err))
		}
		if fails {
			return errMine
		}
		return nil
	}
	next := w.memory.clone()
	want := run(next, &meant)
	err := w.store.Update(w.Context(), func(tx store.Tx) error { return run(tx, &learned) })
	if !errors.Is(err, want) {
		return fmt.Errorf("update: got error %s, want %s", fmt.Sprint(err), fmt.Sprint(want))
	}
	for i := range meant {
		if learned[i] != meant[i] {
			return fmt.Errorf("after\n\t%s\nthe store says\n\t%s\nand the model\n\t%s", strings.Join(meant[:i], "\n\t"), learned[i], meant[i])
		}
	}
	if want == nil {
		w.memory = next
	}
	return nil
}

func (w *worker) append(chain string, n int) step {
	return step{fmt.Sprintf("append %d to %s", n, chain), func(tx store.Tx) (any, error) {
		for range n {
			if err := append1(chain, "some words, so that a page holds only a few of them")(tx); err != nil {
				return nil, err
			}
		}
		return nil, nil
	}}
}

// talk writes a conversation at a place, with messages and timers.
func (w *worker) talk(place string, n int) step {
	id := fmt.Sprintf("%s conversation %d", place, w.random.IntN(3))
	return step{fmt.Sprintf("put %s with %d messages", id, n), func(tx store.Tx) (any, error) {
		c, _ := tx.Conversation(id)
		err := tx.PutConversation(store.Conversation{ID: id, Version: c.Version, Place: place, LastAt: at(n)})
		for seq := range uint64(n) {
			err = errors.Join(err,
				tx.PutMessage(store.Message{Conversation: id, Seq: seq + 1, Text: strings.Repeat("words ", 20)}),
				tx.SetTimer(store.Timer{Kind: w.kind(), Ref: fmt.Sprint(id, seq), Due: at(int(seq) * n), Lane: place}))
		}
		return nil, err
	}}
}

// ask adds requests of a person, each with an outbox message and its renderings.
func (w *worker) ask(who string, n int) step {
	conversation := fmt.Sprintf("%s conversation %d", who, w.random.IntN(3))
	from := w.random.IntN(20)
	facts := approvers.AskFacts{Requesters: []approvers.PersonID{approvers.PersonID(who)}}
	return step{fmt.Sprintf("put %d requests of %s from %d on in %s", n, who, from, conversation), func(tx store.Tx) (any, error) {
		for i := from; i < from+n; i++ {
			id := fmt.Sprint(who, " request ", i)
			r, _ := tx.Request(id)
			s, _ := tx.OutboxMessage("card of " + id)
			post := s.Version + 1
			err := errors.Join(
				tx.PutRequest(approvers.Request{ID: id, Version: r.Version, State: approvers.Pending, Conversation: conversation, CreatedAt: at(i), Facts: facts}),
				tx.PutOutboxMessage(store.OutboxMessage{ID: "card of " + id, Version: s.Version, Ref: id, Channel: "C", TS: who}),
				ignoreConflict(tx.PutRendering(store.Rendering{OutboxMessage: "card of " + id, Post: post, Body: make([]byte, 300)})))
			if err != nil {
				return nil, err
			}
		}
		return nil, nil
	}}
}

func ignoreConflict(err error) error {
	if errors.Is(err, store.ErrConflict) {
		return nil
	}
	return err
}

// step returns a random operation that writes. Most of these operations delete rows.
func (w *worker) step() step {
	one := w.random.IntN(rowGroups)
	last := min(one+w.random.IntN(mostGroups), rowGroups-1)
	place, n := w.group(one), w.random.IntN(rowsOfEach)
	switch w.random.IntN(9) {
	case 0:
		return w.append(place, n)
	case 1:
		return w.talk(place, n)
	case 2:
		return w.ask(place, n)
	case 3, 4:
		return step{fmt.Sprintf("prune %s to %s", place, w.group(last)), func(tx store.Tx) (any, error) {
			sum := 0
			for g := one; g <= last; g++ {
				n, err := tx.PruneChain(w.group(g))
				if sum += n; err != nil {
					return sum, err
				}
			}
			return sum, nil
		}}
	case 5, 6:
		return step{fmt.Sprintf("erase the conversations of %s to %s", place, w.group(last)), func(tx store.Tx) (any, error) {
			for g := one; g <= last; g++ {
				for i := range 3 {
					if done, err := tx.EraseConversation(fmt.Sprintf("%s conversation %d", w.group(g), i), noLimit); err != nil || !done {
						return done, err
					}
				}
			}
			return true, nil
		}}
	case 7:
		return step{fmt.Sprintf("erase the payloads of %s", place), func(tx store.Tx) (any, error) { return tx.ErasePayloads(place) }}
	}
	return step{fmt.Sprintf("erase renderings of %s below %d", place, n), func(tx store.Tx) (any, error) {
		sum := 0
		for i := range 30 {
			some, err := tx.EraseRenderings(fmt.Sprint("card of ", place, " request ", i), uint64(n))
			if sum += some; err != nil {
				return sum, err
			}
		}
		return sum, nil
	}}
}

// look returns a random read.
func (w *worker) look() step {
	place, n := w.some(), w.random.IntN(rowsOfEach)
	switch w.random.IntN(9) {
	case 0, 1:
		return step{"the head of " + place, func(tx store.Tx) (any, error) { return tx.AuditHead(place) }}
	case 2:
		return step{"the chain " + place, func(tx store.Tx) (any, error) { return tx.Audit(place) }}
	case 3:
		return step{"the conversation at " + place, func(tx store.Tx) (any, error) { return tx.ConversationAt(place) }}
	case 4:
		return step{"the requests of " + place, func(tx store.Tx) (any, error) {
			list, err := tx.RequestsOf(approvers.PersonID(place), store.RequestCursor{CreatedAt: at(n), ID: place}, 1+n)
			all, err2 := tx.RequestsOf(approvers.PersonID(place), store.RequestCursor{}, 1+n)
			return append(list, all...), errors.Join(err, err2)
		}}
	case 5:
		return step{"the outbox message at " + place, func(tx store.Tx) (any, error) { return tx.OutboxMessageAt("C", place) }}
	case 6:
		return step{"timers", func(tx store.Tx) (any, error) { return tx.Timers(w.kind(), noLimit) }}
	}
	return step{fmt.Sprintf("the messages of %s, and a payload", place), func(tx store.Tx) (any, error) {
		list, err := tx.Messages(place+" conversation 1", uint64(n))
		if err != nil {
			return list, err
		}
		p, err := tx.AuditPayload(place, uint64(n))
		return []any{list, p}, err
	}}
}
