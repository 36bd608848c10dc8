package audit

import (
	"testing"
	"time"

	"countersign/approvers"
)

// TestDecisionTimes checks two times: the time in which half of the decisions were made, and the time in which nine
// tenths were made.
func TestDecisionTimes(t *testing.T) {
	for n, want := range map[int][2]time.Duration{1: {1, 1}, 2: {1, 2}, 3: {2, 3}, 4: {2, 4}, 10: {5, 9}, 11: {6, 10}, 100: {50, 90}} {
		var p DecisionStats
		for i := n; i > 0; i-- {
			p.add(approvers.Approve, time.Duration(i))
		}
		half, _ := p.Within(50)
		nine, ok := p.Within(90)
		if got := [2]time.Duration{half, nine}; got != want || !ok {
			t.Errorf("of %d decisions: %v; want %v", n, got, want)
		}
	}
	if _, ok := new(DecisionStats).Within(50); ok {
		t.Error("there is a time although there is no decision")
	}
}
