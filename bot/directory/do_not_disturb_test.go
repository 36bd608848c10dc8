package directory

import (
	"testing"
	"time"

	"countersign/bot/bottest"

	"github.com/slack-go/slack"
)

func TestQuietEnd(t *testing.T) {
	at := func(d time.Duration) int { return int(bottest.Noon.Add(d).Unix()) }
	snooze := func(d time.Duration) slack.SnoozeInfo {
		return slack.SnoozeInfo{SnoozeEnabled: true, SnoozeEndTime: at(d)}
	}
	for _, tt := range []struct {
		name   string
		status slack.DNDStatus
		until  time.Duration // zero: the person can be disturbed
	}{
		{"nothing set", slack.DNDStatus{}, 0},
		{"tonight", slack.DNDStatus{Enabled: true, NextStartTimestamp: at(8 * time.Hour), NextEndTimestamp: at(18 * time.Hour)}, 0},
		{"now", slack.DNDStatus{Enabled: true, NextStartTimestamp: at(-time.Hour), NextEndTimestamp: at(time.Hour)}, time.Hour},
		{"begins now", slack.DNDStatus{Enabled: true, NextStartTimestamp: at(0), NextEndTimestamp: at(time.Hour)}, time.Hour},
		{"ends now", slack.DNDStatus{Enabled: true, NextStartTimestamp: at(-time.Hour), NextEndTimestamp: at(0)}, 0},
		{"switched off", slack.DNDStatus{NextStartTimestamp: at(-time.Hour), NextEndTimestamp: at(time.Hour)}, 0},
		{"a pause", slack.DNDStatus{SnoozeInfo: snooze(time.Hour)}, time.Hour},
		{"a pause that is over", slack.DNDStatus{SnoozeInfo: snooze(-time.Hour)}, 0},
		{"a pause that ends after the night", slack.DNDStatus{Enabled: true, NextStartTimestamp: at(-time.Hour), NextEndTimestamp: at(time.Hour), SnoozeInfo: snooze(2 * time.Hour)}, 2 * time.Hour},
	} {
		want := time.Time{}
		if tt.until > 0 {
			want = bottest.Noon.Add(tt.until)
		}
		if got := quietEnd(tt.status, bottest.Noon); !got.Equal(want) {
			t.Errorf("%s: until %s; want %s", tt.name, got, want)
		}
	}
}
