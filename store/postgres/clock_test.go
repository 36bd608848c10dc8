package postgres

import (
	"testing"
	"time"
)

// The offset follows the measurement with the shortest round trip of the last minute, and a clock that is set. It does
// not follow small changes.
func TestOffset(t *testing.T) {
	began := time.Now()
	c := offsetClock{machine: time.Now}
	for _, m := range []struct {
		what   string
		after  time.Duration // since the start
		offset time.Duration
		bound  time.Duration
		want   time.Duration
	}{
		{"the clocks agree", 0, 999 * time.Millisecond, time.Millisecond, 0},
		{"a slow answer leaves it open whether they agree", time.Second, 2900 * time.Millisecond, 2 * time.Second, 0},
		{"one clock was set", 2 * time.Second, time.Hour, 2 * time.Second, time.Hour},
		{"a shorter round trip", 3 * time.Second, time.Hour - 1500*time.Millisecond, time.Millisecond, time.Hour - 1500*time.Millisecond},
		{"a longer round trip does not count", 4 * time.Second, time.Hour, 2 * time.Second, time.Hour - 1500*time.Millisecond},
		{"after a minute, it counts if it is clear", 64 * time.Second, time.Hour + 2*time.Second, 2 * time.Second, time.Hour + 2*time.Second},
		{"a small change", 65 * time.Second, time.Hour + 1500*time.Millisecond, time.Millisecond, time.Hour + 2*time.Second},
		{"the clock was set right", 66 * time.Second, -300 * time.Millisecond, time.Millisecond, 0},
	} {
		before := c.Offset()
		was, is := c.add(measurement{at: began.Add(m.after), offset: m.offset, bound: m.bound})
		if was != before || is != m.want || c.Offset() != m.want {
			t.Errorf("%s: the offset changes from %s to %s, want %s", m.what, was, is, m.want)
		}
	}
}

// The machine's time at the middle of the round trip is compared with the database's time.
func TestMeasurement(t *testing.T) {
	sent := time.Now()
	m := between(sent, sent.Add(200*time.Millisecond), sent.Add(-time.Hour), sent.Add(100*time.Millisecond))
	if m.offset != time.Hour || m.bound != 100*time.Millisecond {
		t.Errorf("got an offset of %s with a bound of %s", m.offset, m.bound)
	}
}
