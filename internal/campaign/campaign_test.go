package campaign_test

import (
	"testing"

	"countersign/internal/campaign"
)

// wrong is a test that notes whether it was ended.
type wrong struct {
	testing.TB
	ended bool
}

func (w *wrong) Fatalf(string, ...any) { w.ended = true }

func TestSize(t *testing.T) {
	const variable = "COUNTERSIGN_CAMPAIGNS"
	for text, want := range map[string]int{"": 7, "1": 1, "10000": 10_000} {
		t.Setenv(variable, text)
		if got := campaign.Size(t, variable, 7); got != want {
			t.Errorf("%q: %d, want %d", text, got, want)
		}
	}
	for _, text := range []string{"0", "-1", "many", "1e4"} {
		t.Setenv(variable, text)
		w := &wrong{TB: t}
		if campaign.Size(w, variable, 7); !w.ended {
			t.Errorf("%q is taken for a size", text)
		}
	}
}

func TestSeed(t *testing.T) {
	t.Setenv(campaign.SeedVariable, "")
	if campaign.Seed(t) == campaign.Seed(t) {
		t.Error("two campaigns have one seed")
	}
	t.Setenv(campaign.SeedVariable, "18446744073709551615")
	if got := campaign.Seed(t); got != 1<<64-1 {
		t.Errorf("the seed is %d", got)
	}
	t.Setenv(campaign.SeedVariable, "-1")
	w := &wrong{TB: t}
	if campaign.Seed(w); !w.ended {
		t.Error("-1 is taken for a seed")
	}
	if a, b := campaign.Chance(1, 1).Uint64(), campaign.Chance(1, 2).Uint64(); a == b || a != campaign.Chance(1, 1).Uint64() {
		t.Error("a stream does not repeat, or is another one's")
	}
}
