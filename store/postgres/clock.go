package postgres

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
)

// The replicas store times, and compare them with times that other replicas have stored. So all replicas use one clock,
// the database's. Each replica adds to its machine's clock the measured difference between the two clocks.

const (
	// leastOffset is the smallest difference between the clocks that counts. Smaller differences do no harm, and without
	// this bound the time of a replica would jump at each measurement.
	leastOffset = time.Second
	// tolerated is the difference between the clocks above which the operator is told.
	tolerated = 5 * time.Second
	// measuredFor is how long a measurement of the difference is used.
	measuredFor = time.Minute
	// drift is more than two clocks can drift apart within measuredFor.
	drift = 100 * time.Millisecond
)

// measurement is a measured difference between the database's clock and this machine's clock.
type measurement struct {
	at     time.Time     // when it was made, with a monotonic reading
	offset time.Duration // the database's time minus this machine's time
	bound  time.Duration // the maximum error of offset: half the round trip
}

// between returns the measurement from a statement that was sent at the time sent and answered at the time answered.
// local is this machine's time at the time sent, and database is the time that the statement returned.
func between(sent, answered, local, database time.Time) measurement {
	half := answered.Sub(sent) / 2
	return measurement{at: answered, offset: database.Sub(local.Round(0).Add(half)), bound: half}
}

// offsetClock is this machine's clock plus an offset, so that it shows the database's time.
type offsetClock struct {
	machine func() time.Time

	mu     sync.Mutex
	recent []measurement // of the last minute, the best first; each later one is newer and has a larger bound
	offset time.Duration
}

func (c *offsetClock) Now() time.Time { return c.machine().Add(c.Offset()) }

// Offset returns the database's time minus this machine's time. If the difference is below a second, Offset returns
// zero.
func (c *offsetClock) Offset() time.Duration {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.offset
}

// add uses a measurement, and returns the offset before and after. The offset follows the measurement with the smallest
// bound of the last minute. If the new measurement contradicts it, one of the clocks was set, and only the new one counts.
func (c *offsetClock) add(m measurement) (before, after time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for len(c.recent) > 0 && m.at.Sub(c.recent[0].at) > measuredFor {
		c.recent = c.recent[1:]
	}
	if len(c.recent) > 0 {
		if best := c.recent[0]; (best.offset - m.offset).Abs() > best.bound+m.bound+drift {
			c.recent = nil
		}
	}
	for n := len(c.recent); n > 0 && c.recent[n-1].bound >= m.bound; n-- {
		c.recent = c.recent[:n-1]
	}
	c.recent = append(c.recent, m)
	before = c.offset
	if best := c.recent[0]; (best.offset-c.offset).Abs()-best.bound >= leastOffset {
		c.offset = significant(best.offset)
	}
	return before, c.offset
}

// significant returns an offset, or zero if the offset is too small to count.
func significant(offset time.Duration) time.Duration {
	if offset.Abs() < leastOffset {
		return 0
	}
	return offset
}

// ClocksApart says how far this machine's clock is from the database's, and what to do. If the difference is tolerated,
// both are empty.
func ClocksApart(offset time.Duration) (what, do string) {
	if offset.Abs() <= tolerated {
		return "", ""
	}
	side := "behind"
	if offset < 0 {
		side = "ahead of"
	}
	return fmt.Sprintf("this machine's clock is %s %s the database's", offset.Abs().Round(time.Second), side),
		"set the clock that is wrong; meanwhile the bot uses the database's time"
}

const readClock = "SELECT clock_timestamp()"

// ReadOffset measures the database's time minus this machine's time once. If the difference is below a second,
// ReadOffset returns zero.
func (s *Store) ReadOffset(ctx context.Context) (time.Duration, error) {
	offset, err := readOffset(ctx, s.pool.QueryRow)
	if err != nil {
		return 0, s.config.sentence(err)
	}
	return offset, nil
}

// ReadOffset is like Store.ReadOffset, for a database that is not open.
func ReadOffset(ctx context.Context, url string) (time.Duration, error) {
	c, err := parse(url)
	if err != nil {
		return 0, err
	}
	conn, err := c.connect(ctx)
	if err != nil {
		return 0, err
	}
	defer hangUp(conn)
	offset, err := readOffset(ctx, conn.QueryRow)
	if err != nil {
		return 0, c.sentence(err)
	}
	return offset, nil
}

func readOffset(ctx context.Context, query func(context.Context, string, ...any) pgx.Row) (time.Duration, error) {
	var database time.Time
	sent := time.Now()
	if err := query(ctx, readClock).Scan(&database); err != nil {
		return 0, err
	}
	m := between(sent, time.Now(), sent, database)
	return significant(m.offset), nil
}
