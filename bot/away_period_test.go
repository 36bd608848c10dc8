package bot

import (
	"strings"
	"testing"
	"time"
)

// saturday is a Saturday afternoon in Berlin.
func saturday(t testing.TB) time.Time {
	t.Helper()
	berlin, err := time.LoadLocation("Europe/Berlin")
	if err != nil {
		t.Fatal(err)
	}
	return time.Date(2026, 11, 21, 15, 30, 0, 0, berlin)
}

func TestReadLeave(t *testing.T) {
	t.Parallel()
	now := saturday(t)
	tests := []struct{ text, from, until, delegate string }{
		{"until monday", "now", "2026-11-23 00:00", ""},
		{"Until Mon.", "now", "2026-11-23 00:00", ""},
		{"until saturday", "now", "2026-11-28 00:00", ""}, // a weekday never means today
		{"until sun", "now", "2026-11-22 00:00", ""},
		{"until tomorrow", "now", "2026-11-22 00:00", ""},
		{"until tomorrow 9:30", "now", "2026-11-22 09:30", ""},
		{"until tomorrow at 5pm", "now", "2026-11-22 17:00", ""},
		{"until 17:00", "now", "2026-11-21 17:00", ""},
		{"until 5:45pm", "now", "2026-11-21 17:45", ""},
		{"until today 23:59", "now", "2026-11-21 23:59", ""},
		{"until next week", "now", "2026-11-23 00:00", ""},
		{"until next friday", "now", "2026-11-27 00:00", ""},
		{"until next sunday", "now", "2026-11-29 00:00", ""}, // Sunday of next week, because weeks begin on Monday
		{"till 2026-12-01", "now", "2026-12-01 00:00", ""},
		{"until 2026-12-01 12:00", "now", "2026-12-01 12:00", ""},
		{"for 3 days", "now", "2026-11-24 15:30", ""},
		{"for a day", "now", "2026-11-22 15:30", ""},
		{"for 2 weeks", "now", "2026-12-05 15:30", ""},
		{"for 4 hours", "now", "2026-11-21 19:30", ""},
		{"for 45 min", "now", "2026-11-21 16:15", ""},
		{"from tomorrow for 3 days", "2026-11-22 00:00", "2026-11-25 00:00", ""},
		{"from monday 12:00 for 2 days", "2026-11-23 12:00", "2026-11-25 12:00", ""},
		{"from monday until friday", "2026-11-23 00:00", "2026-11-27 00:00", ""},
		{"from friday until monday", "2026-11-27 00:00", "2026-11-30 00:00", ""},
		{"from monday 9:00 to 12:00", "2026-11-23 09:00", "2026-11-23 12:00", ""},
		{"from now until 18:00", "now", "2026-11-21 18:00", ""},
		{"from 2026-11-01 until monday", "2026-11-01 00:00", "2026-11-23 00:00", ""}, // the absence began in the past
		{"from 2026-12-24 until 2027-01-02, delegate to <@U0004|kenji>", "2026-12-24 00:00", "2027-01-02 00:00", "U0004"},
		{"delegate <@U0004> until monday", "now", "2026-11-23 00:00", "U0004"},
		{"until monday,stand-in <@U0004|Kenji, the second>", "now", "2026-11-23 00:00", "U0004"},
		{"until monday and delegate to <@W0004|kenji>.", "now", "2026-11-23 00:00", "W0004"},
	}
	for _, tt := range tests {
		got, err := parseAway(tt.text, now)
		if err != nil {
			t.Errorf("%q: %v", tt.text, err)
			continue
		}
		const layout = "2006-01-02 15:04"
		from := got.from.Format(layout)
		if got.from.Equal(now) {
			from = "now"
		}
		if until := got.until.Format(layout); from != tt.from || until != tt.until || got.delegate != tt.delegate {
			t.Errorf("%q is from %s until %s, delegate %q; want %s, %s, %q", tt.text, from, until, got.delegate, tt.from, tt.until, tt.delegate)
		}
	}
}

// TestUnclearLeaves checks that the bot's answer names the unclear part of the input, and suggests another text.
func TestUnclearLeaves(t *testing.T) {
	t.Parallel()
	now := saturday(t)
	for text, want := range map[string]string{
		"monday":                           "away until monday",
		"until":                            "A day or a time is missing",
		"until whenever":                   "“whenever” is not a day or time that I know. Write a date as 2026-11-28",
		"until 24.12.2026":                 "Write a date as",
		"until 2026-02-30":                 "Write a date as",
		"until 12/24":                      "Write a date as",
		"until next year":                  "“next year” is not clear",
		"until 15:00":                      "That is over already: Saturday, 21 November 2026, 15:00 (Europe/Berlin). It is Saturday, 21 November 2026, 15:30 (Europe/Berlin) now.",
		"until today":                      "That is over already",
		"until 2026-11-20":                 "That is over already",
		"from 2026-12-24 until 2026-12-2":  "Write a date as",
		"from 2026-12-24 until 2026-12-20": "That ends before it begins",
		"until 2062-12-01":                 "more than two years ahead",
		"from monday":                      "Say until when",
		"delegate to <@U0004>":             "Say until when",
		"for 3":                            "for 3 days",
		"for ever":                         "for 3 days",
		"for 0 days":                       "for 3 days",
		"for -1 days":                      "for 3 days",
		"for 99999999999999999999 days":    "for 3 days",
		"until monday, delegate to @kenji": "choose the person from Slack's list",
		"until monday, delegate to kenji":  "“kenji” names nobody",
		"until monday, delegate to":        "Say who stands in",
		"until monday <!channel>":          "I don't understand “<!channel>”",
	} {
		if _, err := parseAway(text, now); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v\nwant %q", text, err, want)
		}
	}
}

// TestLeavesOverAChangeOfClocks checks that each day begins at midnight, even if the previous day has 23 or 25 hours.
// An absence of two days ends at the time of day at which it began.
func TestLeavesOverAChangeOfClocks(t *testing.T) {
	t.Parallel()
	zone, err := time.LoadLocation("Europe/Berlin")
	if err != nil {
		t.Fatal(err)
	}
	for _, now := range []time.Time{time.Date(2026, 3, 28, 12, 0, 0, 0, zone), time.Date(2026, 10, 24, 12, 0, 0, 0, zone)} {
		for text, want := range map[string]string{"until monday": "Mon 00:00", "from tomorrow for a day": "Mon 00:00", "for 2 days": "Mon 12:00"} {
			got, err := parseAway(text, now)
			if err != nil || got.until.Format("Mon 15:04") != want {
				t.Errorf("%q at %s is until %s (%v)", text, now, got.until, err)
			}
		}
	}
}

func FuzzReadLeave(f *testing.F) {
	for _, text := range []string{"until monday", "for 3 days", "from 2026-12-24 until 2027-01-02, delegate to <@U0004|kenji>", "until 5pm <@U1> next"} {
		f.Add(text)
	}
	now := time.Date(2026, 11, 21, 15, 30, 0, 0, time.UTC)
	f.Fuzz(func(t *testing.T, text string) {
		got, err := parseAway(text, now)
		if err == nil && (!got.until.After(now) || !got.until.After(got.from) || got.until.Sub(now) > 3*366*24*time.Hour) {
			t.Errorf("%q is from %s until %s", text, got.from, got.until)
		}
		if err != nil && len(err.Error()) > 600 {
			t.Errorf("%q is answered with %d characters", text, len(err.Error()))
		}
	})
}
