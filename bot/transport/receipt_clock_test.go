package transport

import (
	"testing"
	"time"
)

// The receipt times of deliveries increase, and follow a clock that was set back by a second or more.
func TestReceiptTimes(t *testing.T) {
	noon := time.Date(2026, 3, 2, 12, 0, 0, 0, time.UTC)
	var c ReceiptClock
	for i, tt := range []struct{ now, want time.Duration }{
		{0, 0}, {0, time.Microsecond}, {time.Second, time.Second}, {time.Second - time.Millisecond, time.Second + time.Microsecond},
		{time.Second - time.Hour, time.Second - time.Hour}, {time.Second - time.Hour, time.Second - time.Hour + time.Microsecond}, {time.Minute, time.Minute},
	} {
		if got := c.Next(noon.Add(tt.now)); !got.Equal(noon.Add(tt.want)) {
			t.Errorf("delivery %d, at %s, was received at %s", i, tt.now, got.Sub(noon))
		}
	}
}
