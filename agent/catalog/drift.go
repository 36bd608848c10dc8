package catalog

import (
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"

	"countersign/agent"
	"countersign/agent/pins"
	"countersign/approvers"
)

// driftReporter logs each tool that is not pinned, is not offered any more, or differs from its pin. Each difference is
// logged once.
type driftReporter struct {
	tools *agent.Registry
	log   *slog.Logger

	mu       sync.Mutex
	reported map[string]string // the last logged state of each tool
}

// loggedLines limits the lines of a logged change. The command "countersign tools show" prints the whole change.
const loggedLines = 12

// ReportDrift logs what changed since its last call: new differences between tools and pins, and differences that
// have disappeared.
func (c *Catalog) ReportDrift() {
	effect := "it is blocked"
	if p := c.Policy(); p != nil && p.Defaults.UnpinnedTools == approvers.UnpinnedUnknown {
		effect = "it counts as an unknown tool"
	}
	c.drift.report(effect)
}

// report logs the differences. The parameter effect says how the policy treats a tool that can be used although it
// differs from its pin.
func (d *driftReporter) report(effect string) {
	all, _ := d.tools.Status()
	d.mu.Lock()
	defer d.mu.Unlock()
	now := map[string]string{}
	for _, t := range all {
		if t.State != pins.New && t.State != pins.Drifted && t.State != pins.Gone {
			continue
		}
		name := t.Tool.Name
		now[name] = string(t.State) + " " + string(t.Definition)
		if d.reported[name] == now[name] {
			continue
		}
		log := d.log.With("tool", name, "source", t.Tool.Source)
		switch {
		case t.State == pins.New:
			log.Error("a tool is not pinned, so " + effect + "; look at it with countersign tools show, and pin it with countersign tools pin")
		case t.State == pins.Gone:
			log.Error("a pinned tool is not offered any more, so it is blocked; open requests for it are voided")
		case t.Fault != nil:
			log.Error("the definition of a tool changed to one that can't be used, so it is blocked; open requests for it are voided", "error", t.Fault)
		default:
			log.Error("the definition of a tool changed, so "+effect+" and open requests for it are voided; look at it with countersign tools show, and pin it with countersign tools pin",
				"changed", strings.Join(firstOf(pins.Diff(t.Pinned, t.Definition), loggedLines), "\n"))
		}
	}
	for name := range d.reported {
		if _, still := now[name]; !still {
			d.log.Info("a tool is as pinned again, or does not exist any more", "tool", name)
		}
	}
	d.reported = now
}

// firstOf returns the first n lines. If lines are omitted, firstOf adds a line with their number.
func firstOf(lines []string, n int) []string {
	if len(lines) <= n {
		return lines
	}
	return append(slices.Clone(lines[:n]), fmt.Sprintf("… and %d more lines", len(lines)-n))
}

// blocked returns an error that names blocked tools, at most ten.
func (d *driftReporter) blocked() error {
	all, _ := d.tools.Status()
	var blocked []string
	for _, t := range all {
		if t.Tool.Blocked != "" {
			blocked = append(blocked, fmt.Sprintf("%s (%s)", t.Tool.Name, t.State))
		}
	}
	if len(blocked) == 0 {
		return nil
	}
	return fmt.Errorf("%s not as pinned: %s; see countersign tools", counted(len(blocked), "tool"), strings.Join(firstOf(blocked, 10), ", "))
}
