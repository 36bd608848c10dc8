package bot

import (
	"testing"
	"time"

	"countersign/bot/bottest"
)

// Deliveries have rising times of receipt, and follow a clock that was set back by more than a moment.
func TestReceiptTimes(t *testing.T) {
	var c receiptClock
	for i, tt := range []struct{ now, want time.Duration }{
		{0, 0}, {0, time.Microsecond}, {time.Second, time.Second}, {time.Second - time.Millisecond, time.Second + time.Microsecond},
		{time.Second - time.Hour, time.Second - time.Hour}, {time.Second - time.Hour, time.Second - time.Hour + time.Microsecond}, {time.Minute, time.Minute},
	} {
		if got := c.next(bottest.Noon.Add(tt.now)); !got.Equal(bottest.Noon.Add(tt.want)) {
			t.Errorf("delivery %d, at %s, was received at %s", i, tt.now, got.Sub(bottest.Noon))
		}
	}
}
