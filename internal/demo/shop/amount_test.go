package shop

import (
	"encoding/json"
	"testing"

	"pgregory.net/rapid"
)

func TestAmountsAreExact(t *testing.T) {
	for text, want := range map[string]Amount{"49.99": 4999, "0": 0, "5": 500, "5.1": 510, "5.100": 510, "-0.05": -5, "999999999.99": 99999999999} {
		if got, err := ParseAmount(text); err != nil || got != want {
			t.Errorf("ParseAmount(%q) = %d, %v; want %d", text, got, err, want)
		}
	}
	for _, text := range []string{"", "5.", ".5", "1e2", "0x10", "5,00", "1.005", "12345678901", "NaN", "+5", " 5"} {
		if got, err := ParseAmount(text); err == nil {
			t.Errorf("ParseAmount(%q) = %v, want an error", text, got)
		}
	}
	rapid.Check(t, func(t *rapid.T) {
		a := Amount(rapid.Int64Range(-99999999999, 99999999999).Draw(t, "amount"))
		data, err := json.Marshal(a)
		if err != nil {
			t.Fatal(err)
		}
		var back Amount
		if err := json.Unmarshal(data, &back); err != nil || back != a {
			t.Fatalf("%d became %s became %d (%v)", a, data, back, err)
		}
	})
}

func TestAmountsAreWrittenAsPeopleDo(t *testing.T) {
	for want, got := range map[string]string{
		"$49.99":    Amount(4999).In("USD"),
		"€20.00":    Amount(2000).In("EUR"),
		"-£0.05":    Amount(-5).In("GBP"),
		"12.00 SEK": Amount(1200).In("SEK"),
	} {
		if got != want {
			t.Errorf("got %s, want %s", got, want)
		}
	}
}
