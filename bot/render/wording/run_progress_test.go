package wording

import (
	"math"
	"strings"
	"testing"

	"countersign/approvers/workflow/view"
	"countersign/bot/render/block"
	"countersign/store"
)

func TestReadings(t *testing.T) {
	for _, c := range []struct {
		done, total float64
		want        string
	}{
		{0, 10, "0 %"}, {9.99, 10, "99 %"}, {10, 10, "100 %"}, {11, 10, "100 %"}, {1e308, 1e-308, "100 %"}, {-3, 10, "0 %"}, {3, -10, "3 so far"}, {0, 0, ""}, {-1, 0, ""},
		{12.7, 0, "12 so far"}, {1e18, 0, ""}, {math.NaN(), 10, ""}, {1, math.NaN(), "1 so far"}, {math.Inf(1), 10, "100 %"}, {math.Inf(1), math.Inf(1), ""}, {1, math.Inf(1), "1 so far"},
	} {
		if got := (RunProgress{Done: c.done, Total: c.total}).amount(); got != c.want {
			t.Errorf("%v of %v is %q, want %q", c.done, c.total, got, c.want)
		}
	}
	masked := view.Call{Call: store.Call{Args: `{"token":"hunter2-hunter2"}`, Secrets: []string{"token"}}}
	if got := (RunProgress{Text: "signing in with hunter2-hunter2"}).words(masked); strings.Contains(got, "hunter2") {
		t.Errorf("a masked argument is shown: %q", got)
	}
	if got := (RunProgress{Text: strings.Repeat("é", 10_000)}).words(masked); block.Width(got) > MaxRunProgressText {
		t.Errorf("%d characters", block.Width(got))
	}
}
