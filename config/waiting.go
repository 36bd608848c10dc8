package config

import (
	"time"

	"github.com/goccy/go-yaml/ast"

	"countersign/approvers"
)

const (
	// none is what the domain takes for an explicit zero: zero itself says that the default applies.
	none          = -1
	mostReminders = 100
	mostRepeats   = 20
)

// clockKeys are the keys that say how long a call waits and who is told meanwhile. Defaults and tools have them.
var clockKeys = []string{"expires_after", "escalate_after", "run_within", "remind_after", "reminders", "repeat", "on_expiry"}

var outcomesOfSilence = []string{string(approvers.ExpiryRejects), string(approvers.ExpiryEscalates)}

// clocks are where the values of clockKeys go.
type clocks struct {
	expiresAfter, escalateAfter, runWithin, remindAfter *time.Duration
	reminders, repeat                                   *int
	onExpiry                                            *approvers.OnExpiry
}

func clocksOf(t *approvers.ToolPolicy) clocks {
	return clocks{&t.ExpiresAfter, &t.EscalateAfter, &t.RunWithin, &t.RemindAfter, &t.Reminders, &t.Repeat, &t.OnExpiry}
}

func defaultClocks(d *approvers.Defaults) clocks {
	return clocks{&d.ExpiresAfter, &d.EscalateAfter, &d.RunWithin, &d.RemindAfter, &d.Reminders, &d.Repeat, &d.OnExpiry}
}

func (f fieldset) clocks(to clocks) {
	f.duration("expires_after", to.expiresAfter)
	f.duration("escalate_after", to.escalateAfter)
	f.duration("run_within", to.runWithin)
	if v, ok := f["remind_after"]; ok {
		v.remindAfter(to.remindAfter)
	}
	f.times("reminders", to.reminders, mostReminders)
	f.times("repeat", to.repeat, mostRepeats)
	if text, ok := f.choice("on_expiry", outcomesOfSilence); ok {
		*to.onExpiry = approvers.OnExpiry(text)
	}
}

// remindAfter reads a time, or never.
func (v value) remindAfter(to *time.Duration) {
	if n, zero := v.node.(*ast.IntegerNode); zero && n.GetToken().Value == "0" {
		v.wrong("0 is no time after which somebody is reminded", "write never, or a time such as 5m")
		return
	}
	if v.is("never") {
		*to = none
		return
	}
	if d, ok := v.durationOr(", or never"); ok {
		*to = d
	}
}

// times reads how often something is done. Zero is kept apart from nothing said.
func (f fieldset) times(key string, to *int, most int) {
	v, ok := f[key]
	if !ok {
		return
	}
	if n, ok := v.whole(0, most); ok {
		*to = n
		if n == 0 {
			*to = none
		}
	}
}
