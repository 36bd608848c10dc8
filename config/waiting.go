package config

import (
	"time"

	"countersign/approvers"
	"countersign/config/yamldoc"
)

const (
	// none stands for a 0 that is written in the policy file, because in package approvers, 0 means that the default
	// applies.
	none          = -1
	mostReminders = 100
	mostRepeats   = 20
)

// clockKeys are the keys that say how long a call waits, and who is notified in this time. Both the defaults and each
// tool can have these keys.
var clockKeys = []string{"expires_after", "escalate_after", "run_within", "remind_after", "reminders", "repeat", "on_expiry"}

var outcomesOfSilence = []string{string(approvers.ExpiryRejects), string(approvers.ExpiryEscalates)}

// The values of clockKeys are read into the variables to which the fields of clocks point.
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

func readClocks(f yamldoc.Fields, to clocks) {
	f.Duration("expires_after", to.expiresAfter)
	f.Duration("escalate_after", to.escalateAfter)
	f.Duration("run_within", to.runWithin)
	if v, ok := f["remind_after"]; ok {
		readRemindAfter(v, to.remindAfter)
	}
	readTimes(f, "reminders", to.reminders, mostReminders)
	readTimes(f, "repeat", to.repeat, mostRepeats)
	if text, ok := f.Choice("on_expiry", outcomesOfSilence); ok {
		*to.onExpiry = approvers.OnExpiry(text)
	}
}

// readRemindAfter reads a time, or never.
func readRemindAfter(v yamldoc.Value, to *time.Duration) {
	if n, ok := v.Integer(); ok && n == "0" {
		v.Wrong("0 is not a time after which somebody is reminded", "write never, or a time such as 5m")
		return
	}
	if v.Is("never") {
		*to = none
		return
	}
	if d, ok := v.DurationOr(", or never"); ok {
		*to = d
	}
}

// readTimes reads a number of repetitions. If the policy says 0, readTimes stores the constant none, because a stored 0
// stands for the default.
func readTimes(f yamldoc.Fields, key string, to *int, most int) {
	v, ok := f[key]
	if !ok {
		return
	}
	if n, ok := v.Whole(0, most); ok {
		*to = n
		if n == 0 {
			*to = none
		}
	}
}
