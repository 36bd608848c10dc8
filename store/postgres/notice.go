package postgres

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"countersign/store"
)

// A replica informs the other replicas about its commits: it sends notices with NOTIFY. A replica sends a notice after
// the transaction has committed. Within the transaction, NOTIFY would hold a lock of the server until the commit is on
// disk. All other transactions with NOTIFY on this server would wait for this lock. Because a notice can be lost after
// the commit, receivers must also read the database regularly.

// notices holds the notices that this replica sends to the other replicas and receives from them.
type notices struct {
	mu       sync.Mutex
	unsent   store.Notice
	free     bool              // the next notice must tell the other replicas that some claims have no owner
	hears    time.Time         // since when the replica has received notices without interruption; zero: it does not receive notices
	more     chan struct{}     // signals that there is something to send
	received chan store.Notice // notices of the other replicas
}

func newNotices() *notices {
	return &notices{more: make(chan struct{}, 1), received: make(chan store.Notice, 64)}
}

// sent is the payload of a notice.
type sent struct {
	From   string       `json:"from"`           // the replica's id
	Free   bool         `json:"free,omitempty"` // the replica has released claims
	Notice store.Notice `json:"notice"`
}

const (
	mostNotice   = 7900 // the maximum size of a payload in bytes; PostgreSQL refuses 8000 bytes
	mostUnsent   = 1000 // number of news items that may wait to be sent; further items are dropped
	notifyWithin = 2 * time.Second
	listenAgain  = time.Second // delay before the next attempt after the connection was lost
)

// Tell collects a notice, which the method notify then sends to the other replicas.
func (r *Replica) Tell(n store.Notice) {
	r.notices.mu.Lock()
	if len(r.notices.unsent.News) > mostUnsent {
		n.News = nil
	}
	r.notices.unsent.Merge(n)
	r.notices.mu.Unlock()
	r.notices.signal()
}

// tellFree tells the other replicas that there are claims without an owner.
func (r *Replica) tellFree() {
	r.notices.mu.Lock()
	r.notices.free = true
	r.notices.mu.Unlock()
	r.notices.signal()
}

func (n *notices) signal() {
	select {
	case n.more <- struct{}{}:
	default: // already signaled
	}
}

// Notices returns the notices of the other replicas.
func (r *Replica) Notices() <-chan store.Notice { return r.notices.received }

// Hears returns the time since which this replica has received the other replicas' notices without interruption. If
// this replica does not receive notices now, the time is zero.
func (r *Replica) Hears() time.Time {
	r.notices.mu.Lock()
	defer r.notices.mu.Unlock()
	return r.notices.hears
}

func (n *notices) setHears(since time.Time) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.hears = since
}

// channel returns the name of the channel for the notices of a schema. The name depends on the schema, because all
// schemas of a database share one set of channel names.
func (c *config) channel() string {
	return fmt.Sprintf("countersign_%x", sha256.Sum256([]byte(c.schema)))[:40]
}

// notify sends the notices that Tell has collected, until ctx ends. While notify sends a notice, Tell merges further
// notices into the next notice.
func (r *Replica) notify(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-r.notices.more:
		}
		r.notices.mu.Lock()
		next := sent{Notice: r.notices.unsent, Free: r.notices.free}
		r.notices.unsent, r.notices.free = store.Notice{}, false
		r.notices.mu.Unlock()
		r.mu.Lock()
		next.From = r.id
		r.mu.Unlock()
		if err := r.store.notify(ctx, next); err != nil {
			r.opts.Log.DebugContext(ctx, "other replicas could not be notified; they find the changes within a second", "error", err)
		}
	}
}

// notify sends a notice.
func (s *Store) notify(ctx context.Context, n sent) error {
	ctx, cancel := context.WithTimeout(ctx, notifyWithin)
	defer cancel()
	for _, payload := range payloads(n) {
		if _, err := s.pool.Exec(ctx, "SELECT pg_notify($1, $2)", s.config.channel(), payload); err != nil {
			return err
		}
	}
	return nil
}

// payloads divides a notice into payloads that PostgreSQL accepts. The last payload has the timers, because receivers
// must get all news before they wake their workers. A part that is too long and can't be divided is dropped.
func payloads(n sent) (list []string) {
	raw, err := json.Marshal(n)
	switch {
	case err != nil: // impossible, because a notice has only texts and numbers
	case len(raw) <= mostNotice:
		return []string{string(raw)}
	case len(n.Notice.News) > 1:
		first, second := sent{From: n.From}, n
		half := len(n.Notice.News) / 2
		first.Notice.News, second.Notice.News = n.Notice.News[:half], n.Notice.News[half:]
		return append(payloads(first), payloads(second)...)
	}
	return nil
}

// listen receives the notices of the other replicas, until ctx ends.
func (r *Replica) listen(ctx context.Context) {
	for ctx.Err() == nil {
		if err := r.listenOnce(ctx); err != nil && ctx.Err() == nil {
			r.opts.Log.DebugContext(ctx, "notices of other replicas are not received; this replica reads the store every second", "error", err)
		}
		select {
		case <-ctx.Done():
		case <-time.After(listenAgain):
		}
	}
}

// listenOnce receives notices until its connection is lost.
func (r *Replica) listenOnce(ctx context.Context) error {
	conn, err := r.store.config.connect(ctx)
	if err != nil {
		return err
	}
	defer func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), lingering)
		defer cancel()
		_ = conn.Close(ctx)
	}()
	if _, err := conn.Exec(ctx, "LISTEN "+r.store.config.channel()); err != nil {
		return err
	}
	r.notices.setHears(time.Now())
	defer r.notices.setHears(time.Time{})
	for {
		n, err := heard(ctx, conn)
		if err != nil {
			return err
		}
		var got sent
		if err := json.Unmarshal([]byte(n.Payload), &got); err != nil {
			return errors.Join(errors.New("a notice can't be read"), err)
		}
		r.mu.Lock()
		own := got.From == r.id
		r.mu.Unlock()
		if own {
			continue
		}
		if got.Free {
			r.beatNow()
		}
		select {
		case r.notices.received <- got.Notice:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// If a connection receives no data for the duration silence, the connection is tested. The test fails if the server
// does not answer within answerWithin.
const (
	silence      = 3 * time.Second
	answerWithin = 2 * time.Second
)

// heard waits for a notification. While no notification arrives, heard tests the connection regularly. If the server's
// machine has failed, only this test detects the failure.
func heard(ctx context.Context, conn *pgx.Conn) (*pgconn.Notification, error) {
	for {
		limited, cancel := context.WithTimeout(ctx, silence)
		n, err := conn.WaitForNotification(limited)
		cancel()
		if err == nil || ctx.Err() != nil || !pgconn.Timeout(err) {
			return n, err
		}
		limited, cancel = context.WithTimeout(ctx, answerWithin)
		err = conn.Ping(limited)
		cancel()
		if err != nil {
			return nil, err
		}
	}
}
