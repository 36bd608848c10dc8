package bot

import (
	"fmt"
	"math"
	"strings"
	"sync"

	"countersign/approvers"
	"countersign/approvers/desk"
)

// reading is how far a run says it is.
type reading struct {
	done, total float64 // total zero: it is not known
	text        string
}

// maxReadingText bounds what is shown of a tool's own words on how far it is.
const maxReadingText = 120

// percent is how much of it is done: never more than all of it, whatever the tool says.
func (r reading) percent() (int, bool) {
	part := r.done / r.total
	if math.IsNaN(part) || r.total <= 0 || math.IsInf(r.total, 0) {
		return 0, false
	}
	return int(math.Floor(100 * min(max(part, 0), 1))), true
}

// amount is the reading in figures; empty: it has none.
func (r reading) amount() string {
	if percent, known := r.percent(); known {
		return fmt.Sprintf("%d %%", percent)
	}
	if r.done > 0 && r.done < 1e15 {
		return fmt.Sprintf("%d so far", int64(r.done))
	}
	return ""
}

// words is the reading's text on one line. What of a call is masked is masked here, too.
func (r reading) words(c desk.CallSight) string {
	return short(oneLine(hush(strings.ToValidUTF8(r.text, "\uFFFD"), []byte(c.Call.Args), c.Call.Secrets)), maxReadingText)
}

// readings are what runs under way say, by execution. None of it is kept anywhere else.
type readings struct {
	mu sync.Mutex
	by map[string]reading
}

func (rs *readings) set(execution string, r reading) {
	rs.mu.Lock()
	defer rs.mu.Unlock()
	if rs.by == nil {
		rs.by = map[string]reading{}
	}
	rs.by[execution] = r
}

func (rs *readings) forget(execution string) {
	rs.mu.Lock()
	defer rs.mu.Unlock()
	delete(rs.by, execution)
}

// of are the readings of the calls of a step that run.
func (rs *readings) of(calls []desk.CallSight) map[string]reading {
	rs.mu.Lock()
	defer rs.mu.Unlock()
	out := map[string]reading{}
	for _, c := range calls {
		if c.Execution == nil || c.Execution.State != approvers.ExecutionExecuting {
			continue
		}
		if r, there := rs.by[c.Execution.ID]; there {
			out[c.Execution.ID] = r
		}
	}
	return out
}

// reading is what a call's run says; false: nothing.
func (s scene) reading(c desk.CallSight) (reading, bool) {
	if c.Execution == nil {
		return reading{}, false
	}
	r, there := s.readings[c.Execution.ID]
	return r, there
}

// running says that a call runs, and how far its tool says it is.
func (s scene) running(c desk.CallSight) *prose {
	p := say("Running…")
	if c.Execution.Tries > 1 {
		p = say(fmt.Sprintf("Running again (try %d)…", c.Execution.Tries))
	}
	r, there := s.reading(c)
	if !there {
		return p
	}
	if amount := r.amount(); amount != "" {
		p.say(" ").strong(amount)
	}
	if words := r.words(c); words != "" {
		p.say(" · ").soft("“" + words + "”")
	}
	return p
}
