package main

import (
	"cmp"
	"context"
	"errors"
	"runtime/pprof"
	"slices"
	"strings"
	"sync"
)

// Goroutines wait at the gate before operations of these kinds.
const (
	atLook   = "look"   // the scheduler reads due timers and their subjects
	atCommit = "commit" // a transaction, before it runs
	atSlack  = "slack"  // a call to Slack
	atModel  = "model"  // a call to the model
	atTool   = "tool"   // a tool, before it acts
	atBack   = "back"   // an answer on its way back: the operation is done, but its caller does not know yet
)

// errKilled is the error of every operation that continues in a killed process. Such an operation has no effect.
var errKilled = errors.New("the process was killed")

// gate blocks all goroutines of the product before they act on anything outside of the product. The simulation releases
// one goroutine at a time.
type gate struct {
	mu      sync.Mutex
	waiting []*waiter
}

// waiter is one goroutine at the gate.
type waiter struct {
	kind string
	what string // description, for the trace, and for an order that does not depend on which goroutine came first
	by   *life
	pass chan lot // a channel with a buffer of one
}

// lot says how the operation of a waiting goroutine ends. With the zero lot, the operation succeeds.
type lot struct {
	fault string
	more  any  // parameters of the fault, or the text that the model says
	hold  bool // after the operation is done, its answer waits at the gate, too
}

func (w *waiter) key() string { return w.kind + " " + w.what }

// wait makes the goroutine wait until the simulation releases it.
func (p *life) wait(ctx context.Context, kind, what string) (lot, error) {
	if p.dead.Load() {
		return lot{}, errKilled
	}
	w := &waiter{kind: kind, what: labelled(ctx) + what, by: p, pass: make(chan lot, 1)}
	g := &p.simulation.gate
	g.mu.Lock()
	g.waiting = append(g.waiting, w)
	g.mu.Unlock()
	var v lot
	var err error
	select {
	case v = <-w.pass:
	case <-ctx.Done():
		err = ctx.Err()
		g.remove(w)
	}
	if p.dead.Load() {
		return lot{}, errKilled
	}
	return v, err
}

// The function "labelled" describes the work of a goroutine by the goroutine's labels.
func labelled(ctx context.Context) string {
	var at []string
	for _, key := range []string{"scheduler", "ref"} {
		if v, ok := pprof.Label(ctx, key); ok {
			at = append(at, v)
		}
	}
	return strings.Join(append(at, ""), " ")
}

// The function "labels" names one of the simulation's own goroutines at the gate.
func labels(ctx context.Context, ref string) context.Context {
	return pprof.WithLabels(ctx, pprof.Labels("ref", ref))
}

func (g *gate) remove(w *waiter) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.waiting = slices.DeleteFunc(g.waiting, func(o *waiter) bool { return o == w })
}

// The method "here" lists the waiting goroutines in a reproducible order. The result looks has the goroutines that only
// read, and the result others has all other goroutines.
func (g *gate) here() (looks, others []*waiter) {
	g.mu.Lock()
	defer g.mu.Unlock()
	slices.SortStableFunc(g.waiting, func(a, b *waiter) int { return cmp.Compare(a.key(), b.key()) })
	for _, w := range g.waiting {
		if w.kind == atLook {
			looks = append(looks, w)
		} else {
			others = append(others, w)
		}
	}
	return looks, others
}

// The method "let" gives a waiting goroutine its lot, and releases the goroutine.
func (g *gate) let(w *waiter, v lot) {
	g.remove(w)
	w.pass <- v
}

// clear releases all goroutines of a process, or all goroutines if p is nil. Goroutines of a killed process get
// errKilled.
func (g *gate) clear(p *life) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.waiting = slices.DeleteFunc(g.waiting, func(w *waiter) bool {
		if p != nil && w.by != p {
			return false
		}
		w.pass <- lot{}
		return true
	})
}
