package jobs

import (
	"cmp"
	"slices"

	"countersign/store"
)

// flows lets the flows of each lane take turns. The next timer of a lane comes from the flow that has waited longest
// since its last turn. The turns are in memory only. After a restart, each lane begins with its first timer.
type flows struct {
	flowOf func(store.Reader, store.Timer) (string, error) // nil: each lane has one flow
	flow   map[string]string                               // by the Ref of a due timer: the timer's flow; only for timers that share their lane with other due timers
	last   map[laneFlow]int                                // the number of the flow's last turn
	turns  int
}

type laneFlow struct{ lane, flow string }

func newFlows(flowOf func(store.Reader, store.Timer) (string, error)) *flows {
	return &flows{flowOf: flowOf, last: map[laneFlow]int{}}
}

// read determines the flow of each due timer that shares its lane with other due timers. read calls flowOf only once
// for each timer. read discards stored flows and turns that no due timer needs.
func (f *flows) read(r store.Reader, due []store.Timer) error {
	if f.flowOf == nil {
		return nil
	}
	lanes := map[string]int{}
	for _, t := range due {
		lanes[t.Lane]++
	}
	known := map[string]string{}
	for _, t := range due {
		if t.Lane == "" || lanes[t.Lane] == 1 {
			continue
		}
		flow, ok := f.flow[t.Ref]
		if !ok {
			var err error
			if flow, err = f.flowOf(r, t); err != nil {
				return err
			}
		}
		known[t.Ref] = flow
	}
	f.flow = known
	for of := range f.last {
		if lanes[of.lane] == 0 {
			delete(f.last, of)
		}
	}
	return nil
}

// order sorts the due timers of each lane, so that the flow that has the next turn comes first. The timers of a flow
// keep their order.
func (f *flows) order(due []store.Timer) {
	if f.flowOf == nil {
		return
	}
	lanes := map[string][]int{}
	for i, t := range due {
		if t.Lane != "" {
			lanes[t.Lane] = append(lanes[t.Lane], i)
		}
	}
	for lane, places := range lanes {
		if len(places) == 1 {
			continue
		}
		timers := make([]store.Timer, len(places))
		for i, at := range places {
			timers[i] = due[at]
		}
		turn := func(t store.Timer) int { return f.last[laneFlow{lane, f.flow[t.Ref]}] }
		slices.SortStableFunc(timers, func(a, b store.Timer) int { return cmp.Compare(turn(a), turn(b)) })
		for i, at := range places {
			due[at] = timers[i]
		}
	}
}

// took counts a turn of the flow of a timer whose handler was started.
func (f *flows) took(t store.Timer) {
	if f.flowOf != nil && t.Lane != "" {
		f.turns++
		f.last[laneFlow{t.Lane, f.flow[t.Ref]}] = f.turns
	}
}
