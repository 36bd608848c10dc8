package main

import (
	"context"
	"errors"
	"testing"
	"time"

	"countersign/approvers/workflow"
)

// The operators are told of a check that has failed for its time. When the check succeeds once, its time begins anew.
func TestLongFailedChecks(t *testing.T) {
	failures := map[string]error{}
	var told []probe
	for name := range toldAfter {
		told = append(told, probe{name: name, ready: func(context.Context) error { return failures[name] }})
	}
	failing := map[string]workflow.FailedCheck{}
	now := time.Date(2026, 3, 2, 12, 0, 0, 0, time.UTC)
	for i, step := range []struct {
		rows, model string
		want        []string
	}{
		{"", "the key is refused", nil},
		{"a row is damaged", "the key is refused", []string{"rows"}},
		{"", "no answer", []string{"model"}},
		{"", "", nil},
		{"", "no answer", nil},
	} {
		clear(failures)
		for name, why := range map[string]string{"rows": step.rows, "model": step.model} {
			if why != "" {
				failures[name] = errors.New(why)
			}
		}
		got := longFailed(t.Context(), told, failing, now.Add(time.Duration(i)*5*time.Minute))
		for _, name := range step.want {
			if f := got[name]; f.Why == "" || name == "model" && (!f.Since.Equal(now) || f.Why != step.model) {
				t.Errorf("step %d: %s is %+v", i, name, f)
			}
		}
		if len(got) != len(step.want) {
			t.Errorf("step %d: the operators are told of %v", i, got)
		}
	}
}
