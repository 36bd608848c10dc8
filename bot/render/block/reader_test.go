package block

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"countersign/bot/bottest"
)

// Times that Slack does not convert are in the reader's own zone and format.
func TestReader(t *testing.T) {
	berlin, err := time.LoadLocation("Europe/Berlin")
	if err != nil {
		t.Fatal(err)
	}
	york, err := time.LoadLocation("America/New_York")
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		r              Reader
		moment, spoken string
	}{
		{Reader{}, "2 Mar 2026 12:00 UTC", "Monday, 2 March 2026, 12:00 (UTC)"},
		{Reader{berlin, "de-DE"}, "2 Mar 2026 13:00 CET", "Monday, 2 March 2026, 13:00 (Europe/Berlin)"},
		{Reader{york, "en-US"}, "Mar 2, 2026 7:00 AM EST", "Monday, March 2, 2026, 7:00 AM (America/New_York)"},
		{Reader{time.FixedZone("UTC+05:30", 19800), "en-IN"}, "2 Mar 2026 5:30 PM UTC+05:30", "Monday, 2 March 2026, 5:30 PM (UTC+05:30)"},
	} {
		if got := c.r.moment(bottest.Noon); got != c.moment {
			t.Errorf("got %q, want %q", got, c.moment)
		}
		if got := c.r.Spoken(bottest.Noon); got != c.spoken {
			t.Errorf("got %q, want %q", got, c.spoken)
		}
	}
	m := Paragraph(Say("until ").At(bottest.Noon, DayTime)).Message()
	Reader{york, "en-US"}.Localize(&m)
	if !strings.Contains(m.Text, "|Mar 2, 2026 7:00 AM EST>") {
		t.Error(m.Text)
	}
	raw, err := json.Marshal(m.Blocks)
	if err != nil || !strings.Contains(string(raw), `"fallback":"Mar 2, 2026 7:00 AM EST"`) {
		t.Error(string(raw), err)
	}
}
