package config

import (
	"fmt"

	"countersign/approvers"
)

// silence warns where a request would expire before anybody is told that it waits.
func (c *checker) silence(o outcome) {
	for i, s := range o.plan.Stages {
		times := stageTimes(o.policy, s)
		if len(c.leadsAt(o, i)) == 0 || times.EscalateAfter < times.ExpiresAfter || times.OnExpiry == approvers.ExpiryEscalates {
			continue
		}
		c.oddOnce(c.writtenAt(o, "escalate_after", "expires_after"),
			fmt.Sprintf("no lead is ever told: a request expires after %s, and a lead would be told after %s", span(times.ExpiresAfter), span(times.EscalateAfter)),
			"let escalate_after be shorter than expires_after")
	}
}

// stageTimes are the tool's times with what a stage says of its own.
func stageTimes(t approvers.ToolPolicy, s approvers.Stage) approvers.ToolPolicy {
	if s.ExpiresAfter > 0 {
		t.ExpiresAfter = s.ExpiresAfter
	}
	if s.EscalateAfter > 0 {
		t.EscalateAfter = s.EscalateAfter
	}
	return t
}

// writtenAt is where one of the keys is written for the outcome's tool: at the tool, or in the defaults.
func (c *checker) writtenAt(o outcome, keys ...string) string {
	for _, of := range []string{"tools." + o.tool + ".", "defaults."} {
		for _, key := range keys {
			if _, ok := c.file.marks[of+key]; ok {
				return of + key
			}
		}
	}
	return o.path(c.file)
}
