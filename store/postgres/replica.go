package postgres

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"countersign/store"
)

// Claims and leases work as follows. Each replica has a row in the table replicas. Once a second, the replica extends
// its lease in this row with a heartbeat. Each claim is a row in the table claims.
//
//   - When the lease of a replica has ended according to the database's clock, any other replica may take over. The
//     other replica removes the row from the table and takes the claims, in one transaction. So a replica whose row is
//     in the table has its claims, even if its heartbeat is very late.
//   - A replica begins work only within its lease. The replica measures the lease by its own clock, from a moment
//     before the heartbeat was sent. By this clock, the lease is slightly shorter than in the database. When the lease
//     ends, the replica cancels the contexts of its work. So the replica stops calling Slack, models and tools before
//     another replica takes over. Only a process that was suspended can't cancel its work in time.
//   - Every transaction under a claim checks in the database that the replica has the claim (check_claim). Both these
//     transactions and the transactions that take claims are serializable. The old owner's transaction may check the
//     claim before the takeover, but commit after the takeover. In the serial order of the transactions, this
//     transaction then comes before the takeover. If a transaction of the new owner has already read rows that the old
//     owner's transaction changes, one of the two transactions fails.
//   - Each replica reads the list of all live replicas, in the same order. From this list, the replica computes the
//     number of claims that it should have: its portion. A replica with too many claims first releases claims without
//     running work. If the replica must release more claims, it begins no new work under some of its other claims. The
//     replica releases each of these claims when the running work under the claim has ended. If the running work takes
//     longer than Drain, the replica keeps the claim, and may begin new work under the claim. A replica never cancels
//     work in order to release a claim.
//   - A replica that can't work (ReplicaOptions.Able) rests: it begins no work, and the claims are divided among the
//     other replicas. If no replica can work, none of them rests.

// ReplicaOptions configures a replica. All fields except Name may be zero.
type ReplicaOptions struct {
	Name    string   // the machine and the process, for people
	Version string   // the version of the program
	Jobs    []string // names of the claims besides the claims on shares
	Log     *slog.Logger
	Able    func() bool      // reports whether this process can do the replica's work now; nil: always
	Now     func() time.Time // the machine's clock; nil: time.Now

	Lease  time.Duration // after this time without a heartbeat, other replicas may take over the replica's claims
	Beat   time.Duration // time between two heartbeats
	Margin time.Duration // by its own clock, the replica treats the lease as shorter by this time
	Drain  time.Duration // if the replica wants to release a claim, how long it begins no new work under the claim and waits for the running work to end
}

// The defaults of ReplicaOptions. If a replica dies, other replicas continue its work after at most one Lease and two
// Beats.
const (
	lease       = 6 * time.Second
	beat        = time.Second
	leaseMargin = 1500 * time.Millisecond
	drain       = 3 * time.Second
)

// If the work under a claim does not end within Drain, the replica tries again to release the claim after drainAgain
// times Drain.
const drainAgain = 10

// leaving is the time limit for the release of a replica's claims in Leave. If the replica can't release its claims,
// other replicas must wait for the end of its lease.
const leaving = 3 * time.Second

// maxTake is how often a replica tries to take claims after one heartbeat. A try fails if another replica takes claims
// at the same time.
const maxTake = 5

// Replica represents this process among the processes that work on a database. Replica is safe for concurrent use.
type Replica struct {
	store *Store
	opts  ReplicaOptions
	names []string // the names of all claims
	knows int64    // the version of the tables that the program's migrations make

	notices *notices
	early   chan struct{} // makes the method keep send the next heartbeat immediately

	stop context.CancelFunc
	work sync.WaitGroup // waits for the replica's goroutines
	once sync.Once

	mu      sync.Mutex
	id      string // the replica's id; it changes when another replica has removed this replica from the table
	until   time.Time
	over    *time.Timer // fires when the lease ends: at the time in the field until
	held    map[string]*holding
	shares  store.Shares
	changed chan struct{}
	alive   int // how many replicas were alive at the last heartbeat

	clock offsetClock // the database's clock

	conn *pgx.Conn // the connection for heartbeats; nil: there is no connection
}

var _ store.Replica = (*Replica)(nil)

// holding is a claim that this replica has.
type holding struct {
	claim    store.Claim
	since    time.Time                       // when the replica got the claim
	work     map[int]context.CancelCauseFunc // cancels each piece of work under the claim
	n        int
	draining time.Time // since when no new work begins under the claim, because the replica wants to release it; zero: new work may begin
	kept     time.Time // when the replica last failed to release the claim, because the work did not end
}

// end cancels the contexts of all work under a claim.
func (h *holding) end() {
	for _, cancel := range h.work {
		cancel(store.ErrFenced)
	}
}

// Join makes this process a replica, until Leave or Close. Join returns after the first heartbeat, when the replica has
// taken free claims up to its portion.
func (s *Store) Join(ctx context.Context, o ReplicaOptions) (*Replica, error) {
	o.Lease, o.Beat = cmp.Or(o.Lease, lease), cmp.Or(o.Beat, beat)
	o.Margin, o.Drain = cmp.Or(o.Margin, leaseMargin), cmp.Or(o.Drain, drain)
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	r := &Replica{
		store: s, opts: o, names: slices.Clone(o.Jobs), notices: newNotices(), early: make(chan struct{}, 1), alive: 1,
		held: map[string]*holding{}, changed: make(chan struct{}), clock: offsetClock{machine: o.Now},
	}
	for share := range store.ShareCount {
		r.names = append(r.names, store.ShareClaim(share))
	}
	var err error
	if r.knows, err = s.config.newest(); err != nil {
		return nil, err
	}
	if err := errors.Join(r.enlist(ctx), r.round(ctx)); err != nil {
		r.disconnect()
		if errors.Is(err, store.ErrNewer) {
			return nil, err
		}
		return nil, s.config.sentence(err)
	}
	r.start()
	s.replica.Store(r)
	return r, nil
}

// start starts the heartbeats and the exchange of notices.
func (r *Replica) start() {
	var ctx context.Context
	ctx, r.stop = context.WithCancel(context.Background())
	r.work.Go(func() { r.keep(ctx) })
	r.work.Go(func() { r.notify(ctx) })
	r.work.Go(func() { r.listen(ctx) })
}

// Shares returns the shares whose work may begin now.
func (r *Replica) Shares() store.Shares {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.startable()
}

func (r *Replica) startable() (shares store.Shares) {
	if !r.leased() {
		return 0
	}
	for share := range store.ShareCount {
		if h := r.held[store.ShareClaim(share)]; h != nil && h.draining.IsZero() {
			shares = shares.With(share)
		}
	}
	return shares
}

// leased reports whether the lease is valid by both clocks of the replica's machine. The monotonic clock alone is not
// enough, because it stops while the machine sleeps. The wall clock alone is not enough, because it may be set back.
func (r *Replica) leased() bool {
	now := time.Now()
	return now.Before(r.until) && now.Round(0).Before(r.until.Round(0))
}

// Changed returns a channel that is closed when the result of Shares changes.
func (r *Replica) Changed() <-chan struct{} {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.changed
}

// Since returns the time at which the replica got a share. If the replica does not have the share, ok is false.
func (r *Replica) Since(share int) (since time.Time, ok bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	h := r.held[store.ShareClaim(share)]
	if h == nil {
		return time.Time{}, false
	}
	return h.since, true
}

// Alive returns how many replicas were alive at the last heartbeat.
func (r *Replica) Alive() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.alive
}

// Now returns the time for times that are stored, or compared with stored times: the time of the database's clock, which
// all replicas share.
func (r *Replica) Now() time.Time { return r.clock.Now() }

// ClockOffset returns the database's time minus this machine's time. If the difference is below a second, ClockOffset
// returns zero.
func (r *Replica) ClockOffset() time.Duration { return r.clock.Offset() }

// tell closes the channel that Changed returned, if the shares have changed. The caller holds mu.
func (r *Replica) tell() {
	if now := r.startable(); now != r.shares {
		r.shares = now
		close(r.changed)
		r.changed = make(chan struct{})
	}
}

// Enter begins work under a claim. The context inner ends when the replica loses the claim, or when its lease ends.
// The caller calls leave when the work has ended. If the replica may not begin work under the claim now, ok is false.
func (r *Replica) Enter(ctx context.Context, claim string) (inner context.Context, leave func(), ok bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	h := r.held[claim]
	if h == nil || !h.draining.IsZero() || !r.leased() {
		return nil, nil, false
	}
	inner, cancel := context.WithCancelCause(store.WithClaims(ctx, h.claim))
	h.n++
	n := h.n
	h.work[n] = cancel
	return inner, func() {
		r.mu.Lock()
		defer r.mu.Unlock()
		delete(h.work, n)
		cancel(nil)
		if len(h.work) == 0 && !h.draining.IsZero() {
			r.beatNow() // the heartbeat releases the claim
		}
	}, true
}

// fenced ends this replica's work under the claims. The store calls fenced if a transaction finds that another
// replica has one of the claims.
func (s *Store) fenced(claims []store.Claim) {
	r := s.replica.Load()
	if r == nil {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, c := range claims {
		if h := r.held[c.Name]; h != nil && h.claim == c {
			r.lose(h)
		}
	}
	r.tell()
}

// lose removes a claim from the replica's claims, and cancels the work under the claim. The caller holds mu.
func (r *Replica) lose(h *holding) {
	delete(r.held, h.claim.Name)
	h.end()
}

// keep sends heartbeats until the replica leaves, or the tables are too new for this program. At its start and once an
// hour, keep removes the rows of old connections.
func (r *Replica) keep(ctx context.Context) {
	tick, hour := time.NewTicker(r.opts.Beat), time.NewTicker(time.Hour)
	defer tick.Stop()
	defer hour.Stop()
	failed := false
	r.forgetConnections(ctx)
	for {
		select {
		case <-ctx.Done():
			return
		case <-hour.C:
			r.forgetConnections(ctx)
			continue
		case <-tick.C:
		case <-r.early:
		}
		err := r.round(ctx)
		if errors.Is(err, store.ErrNewer) || errors.Is(err, store.ErrRewound) {
			return // the store has stopped
		}
		if err != nil && ctx.Err() == nil && !failed {
			r.opts.Log.WarnContext(ctx, "the database does not answer the heartbeat of this replica", "error", err)
			r.store.renew(time.Now())
		}
		failed = err != nil
	}
}

// forgetConnections removes the rows of old connections. If this fails, the next hour's statement removes the rows.
func (r *Replica) forgetConnections(ctx context.Context) {
	conn, err := r.connected(ctx)
	if err != nil {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, r.opts.Beat) // the next heartbeat must not be late
	defer cancel()
	if _, err := conn.Exec(ctx, deleteOldConnections); err != nil {
		r.disconnect()
	}
}

// beatNow makes the replica send its next heartbeat immediately.
func (r *Replica) beatNow() {
	select {
	case r.early <- struct{}{}:
	default: // already signaled
	}
}

// round sends a heartbeat. After the heartbeat, the replica takes or releases claims, so that it has its portion of the
// claims.
func (r *Replica) round(ctx context.Context) error {
	if _, err := r.connected(ctx); err != nil { // before the timeout below starts, because connecting tries each address
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, max(r.opts.Lease/3, r.opts.Beat))
	defer cancel()
	seen, err := r.beat(ctx)
	if err != nil {
		r.disconnect()
		return err
	}
	if seen.lacks != nil {
		r.forget()
		return r.store.rewound(*seen.lacks)
	}
	if !seen.tables.worksWith(r.knows) { // the lease had ended, and the tables were migrated to a version that this program can't use
		err := r.store.config.newer(seen.tables, r.knows)
		r.forget()
		r.store.stopped(err)
		return err
	}
	if !seen.listed { // another replica has removed this replica from the table
		r.opts.Log.WarnContext(ctx, "other replicas took this replica for dead, and took over its work; it joins again", "replica", r.opts.Name)
		r.forget()
		return r.enlist(ctx)
	}
	r.adopt(seen)
	if err := r.giveUp(ctx, seen); err != nil {
		r.disconnect()
		return err
	}
	taken, err := r.take(ctx, seen)
	for tries := 1; isContended(err); tries++ { // other replicas take claims at the same time
		if tries == maxTake {
			return nil // the replica tries to take claims after its next heartbeat
		}
		pause(10 * time.Millisecond)
		taken, err = r.take(ctx, seen)
	}
	if err != nil {
		r.disconnect()
		return err
	}
	if !taken {
		return nil
	}
	if seen, err = r.beat(ctx); err != nil {
		r.disconnect()
		return err
	}
	r.adopt(seen)
	return nil
}

// connected returns the connection for heartbeats. If there is no connection, connected makes a connection. Heartbeats
// do not use a connection of the pool, because all connections of the pool may be in use.
func (r *Replica) connected(ctx context.Context) (*pgx.Conn, error) {
	if r.conn == nil {
		conn, err := r.store.config.connect(ctx)
		if err != nil {
			return nil, err
		}
		r.conn = conn
	}
	return r.conn, nil
}

func (r *Replica) disconnect() {
	if r.conn != nil {
		ctx, cancel := context.WithTimeout(context.Background(), lingering)
		defer cancel()
		_ = r.conn.Close(ctx)
		r.conn = nil
	}
}

// Working lists the names of the live replicas, except this process's own replica.
func (s *Store) Working(ctx context.Context) (names []string, err error) {
	own := ""
	if r := s.replica.Load(); r != nil {
		r.mu.Lock()
		own = r.id
		r.mu.Unlock()
	}
	err = s.inPlace(ctx, func(conn *pgx.Conn) error {
		found, err := conn.Query(ctx, "SELECT name FROM replicas WHERE alive_until > clock_timestamp() AND id <> $1 ORDER BY name", own)
		if err != nil {
			return err
		}
		names, err = pgx.CollectRows(found, pgx.RowTo[string])
		return err
	})
	return names, err
}

// enlist adds the replica, with a new id, to the table replicas.
func (r *Replica) enlist(ctx context.Context) error {
	conn, err := r.connected(ctx)
	if err != nil {
		return err
	}
	id := rand.Text()
	b := &pgx.Batch{}
	b.Queue("INSERT INTO claims (name, owner, epoch) SELECT unnest($1::text[]), '', 0 ON CONFLICT (name) DO NOTHING", r.names)
	b.Queue("INSERT INTO replicas (id, name, version, schema_version, joined_at, alive_until) VALUES ($1, $2, $3, $4, clock_timestamp(), clock_timestamp() + $5::bigint * interval '1 millisecond')",
		id, r.opts.Name, r.opts.Version, r.knows, r.opts.Lease.Milliseconds())
	if err := conn.SendBatch(ctx, b).Close(); err != nil {
		r.disconnect()
		return err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.id = id
	return nil
}

// forget cancels all work, and makes the replica's list of its claims empty.
func (r *Replica) forget() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.until = time.Time{}
	for _, h := range r.held {
		r.lose(h)
	}
	r.tell()
}

// beheld is the state of the tables replicas and claims that a heartbeat has read.
type beheld struct {
	sent   time.Time
	listed bool          // the replica is in the table
	own    []store.Claim // the claims of the replica
	free   int           // how many claims have an owner that is not in the table replicas
	alive  []string      // the replicas within their leases, in the order of their ids
	able   []string      // those of them that share the claims: the replicas that do not rest, or all if all rest
	dead   int           // how many replicas in the table have leases that have ended
	tables looked
	lacks  *store.Head // the head that the database had before, and lacks now; nil: there is none
}

// beat extends the lease, measures the database's clock, and reads the tables of claims and replicas.
func (r *Replica) beat(ctx context.Context) (seen beheld, err error) {
	conn, err := r.connected(ctx)
	if err != nil {
		return seen, err
	}
	seen.sent = time.Now()
	local := r.opts.Now()
	var clock measurement
	b := &pgx.Batch{}
	row(readClock, nil, func(found pgx.Row) error {
		var database time.Time
		err := found.Scan(&database)
		clock = between(seen.sent, time.Now(), local, database)
		return err
	})(b)
	rests := r.opts.Able != nil && !r.opts.Able()
	b.Queue("UPDATE replicas SET alive_until = clock_timestamp() + $2::bigint * interval '1 millisecond', rests = $3 WHERE id = $1", r.id, r.opts.Lease.Milliseconds(), rests).
		Exec(func(tag pgconn.CommandTag) error {
			seen.listed = tag.RowsAffected() == 1
			return nil
		})
	rows("SELECT name, epoch FROM claims WHERE owner = $1 ORDER BY name", []any{r.id}, func(found pgx.Rows) error {
		c := store.Claim{Owner: r.id}
		err := found.Scan(&c.Name, &c.Epoch)
		seen.own = append(seen.own, c)
		return err
	})(b)
	row("SELECT count(*) FROM claims c WHERE name = ANY($1) AND NOT EXISTS (SELECT FROM replicas r WHERE r.id = c.owner)", []any{r.names}, func(found pgx.Row) error { return found.Scan(&seen.free) })(b)
	rows("SELECT id, alive_until > clock_timestamp(), rests FROM replicas ORDER BY id", nil, func(found pgx.Rows) error {
		var id string
		var alive, rests bool
		err := found.Scan(&id, &alive, &rests)
		switch {
		case !alive:
			seen.dead++
			return err
		case !rests:
			seen.able = append(seen.able, id)
		}
		seen.alive = append(seen.alive, id)
		return err
	})(b)
	row("SELECT max(version_id), coalesce(max(oldest_program), 0) FROM "+versionTable+" WHERE is_applied", nil, func(found pgx.Row) error {
		return found.Scan(&seen.tables.version, &seen.tables.oldest)
	})(b)
	lacks, newest := r.store.newest.Load(), store.Head{}
	readNewest(b, &newest)
	if lacks != nil {
		b.Queue("SELECT FROM audit_heads WHERE number = $1 AND note = $2", number(lacks.Number), []byte(lacks.Note)).Exec(func(tag pgconn.CommandTag) error {
			if tag.RowsAffected() == 0 {
				seen.lacks = lacks
			}
			return nil
		})
	}
	if err = conn.SendBatch(ctx, b).Close(); err == nil && newest.Number > 0 && seen.lacks == nil {
		r.store.saw(newest)
	}
	if len(seen.able) == 0 {
		seen.able = seen.alive
	}
	if err == nil {
		r.setClock(ctx, clock)
	}
	return seen, err
}

// setClock uses a measurement of the database's clock. If the clocks are too far apart, setClock tells the operator.
func (r *Replica) setClock(ctx context.Context, m measurement) {
	before, after := r.clock.add(m)
	switch what, do := ClocksApart(after); {
	case before == after:
	case what != "":
		r.opts.Log.WarnContext(ctx, what, "do", do)
	case before.Abs() > tolerated:
		r.opts.Log.InfoContext(ctx, "this machine's clock and the database's agree again")
	}
}

// adopt extends the lease by the replica's own clock, after a heartbeat. adopt also replaces the replica's claims
// with the claims that the heartbeat has read.
func (r *Replica) adopt(seen beheld) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.alive = max(len(seen.alive), 1)
	r.until = seen.sent.Add(r.opts.Lease - r.opts.Margin)
	if r.over != nil {
		r.over.Stop()
	}
	r.over = time.AfterFunc(time.Until(r.until), r.expire)
	left := map[string]bool{}
	for _, c := range seen.own {
		left[c.Name] = true
		h := r.held[c.Name]
		if h != nil && h.claim != c {
			r.lose(h)
			h = nil
		}
		if h == nil {
			r.held[c.Name] = &holding{claim: c, since: time.Now(), work: map[int]context.CancelCauseFunc{}}
		}
	}
	for name, h := range r.held {
		if !left[name] {
			r.lose(h)
		}
	}
	r.tell()
}

// expire cancels all work when the lease has ended by the replica's own clock. The replica keeps its claims, because
// the next heartbeat may come before another replica takes them.
func (r *Replica) expire() {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.leased() {
		return
	}
	for _, h := range r.held {
		h.end()
	}
	r.tell()
}

// portion returns how many claims the replica should have if the claims are divided equally among the replicas that
// share them.
func (r *Replica) portion(seen beheld) int {
	own := slices.Index(seen.able, r.id)
	if own < 0 && len(seen.able) > 0 {
		return 0
	}
	n := max(len(seen.able), 1)
	most := len(r.names) / n
	if own < len(r.names)%n {
		most++
	}
	return most
}

// giveUp releases claims if the replica has more claims than its portion. giveUp releases only claims without running
// work.
func (r *Replica) giveUp(ctx context.Context, seen beheld) error {
	release := r.excess(seen)
	if len(release) == 0 {
		return nil
	}
	_, err := r.conn.Exec(ctx, "UPDATE claims SET owner = '' WHERE owner = $1 AND name = ANY($2)", r.id, release)
	if err == nil {
		r.tellFree()
	}
	return err
}

// excess chooses the claims that must be released now, removes them from the replica's claims, and returns their names.
// If there are not enough claims without running work, excess stops new work under some other claims for at most Drain.
func (r *Replica) excess(seen beheld) (release []string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	defer r.tell()
	all := slices.SortedFunc(maps.Values(r.held), func(a, b *holding) int {
		return cmp.Or(cmp.Compare(len(a.work), len(b.work)), b.draining.Compare(a.draining), cmp.Compare(a.claim.Name, b.claim.Name))
	})
	excess := len(all) - r.portion(seen)
	for _, h := range all {
		switch {
		case excess <= 0: // the remaining claims are within the replica's portion
			h.draining = time.Time{}
			continue
		case len(h.work) == 0:
			release = append(release, h.claim.Name)
			r.lose(h)
		case slices.Contains(r.opts.Jobs, h.claim.Name): // the work of a job does not end by itself
			continue
		case !h.draining.IsZero() && time.Since(h.draining) > r.opts.Drain:
			h.draining, h.kept = time.Time{}, time.Now()
			continue
		case h.draining.IsZero() && time.Since(h.kept) <= drainAgain*r.opts.Drain:
			continue
		case h.draining.IsZero():
			h.draining = time.Now()
		}
		excess--
	}
	return release
}

// take takes free claims, up to the replica's portion, and removes dead replicas from the table. If there is nothing to
// take or remove, take returns false.
func (r *Replica) take(ctx context.Context, seen beheld) (bool, error) {
	r.mu.Lock()
	lacks := r.portion(seen) - len(r.held)
	r.mu.Unlock()
	if seen.dead == 0 && (seen.free == 0 || lacks <= 0) {
		return false, nil
	}
	b := &pgx.Batch{}
	b.Queue(beginUpdate)
	b.Queue("DELETE FROM replicas WHERE alive_until <= clock_timestamp() AND id <> $1", r.id)
	b.Queue(`
UPDATE claims SET owner = $1, epoch = epoch + 1
WHERE EXISTS (SELECT FROM replicas WHERE id = $1) AND name = ANY(ARRAY(
    SELECT name FROM claims c WHERE name = ANY($2) AND NOT EXISTS (SELECT FROM replicas r WHERE r.id = c.owner) ORDER BY name LIMIT $3 FOR UPDATE SKIP LOCKED))`,
		r.id, r.names, max(lacks, 0))
	b.Queue("commit")
	err := r.conn.SendBatch(ctx, b).Close()
	if err != nil && !r.conn.IsClosed() {
		_, rolledBack := r.conn.Exec(ctx, "rollback")
		return false, cmp.Or(err, rolledBack)
	}
	return err == nil, err
}

// Leave ends the replica. The replica begins no more work, cancels its running work, and releases its claims, so that
// other replicas can take them.
func (r *Replica) Leave() {
	r.once.Do(func() {
		r.stop()
		r.work.Wait()
		r.forget()
		ctx, cancel := context.WithTimeout(context.Background(), leaving)
		defer cancel()
		conn, err := r.connected(ctx)
		if err == nil {
			b := &pgx.Batch{}
			b.Queue("UPDATE claims SET owner = '' WHERE owner = $1", r.id)
			b.Queue("DELETE FROM replicas WHERE id = $1", r.id)
			err = conn.SendBatch(ctx, b).Close()
		}
		if err == nil {
			_ = r.store.notify(ctx, sent{From: r.id, Free: true}) // if this fails, the other replicas find the free claims within a second
		}
		if err != nil { // the other replicas take the claims after the end of the lease
			r.opts.Log.WarnContext(ctx, "this replica could not release its work: others take over when its lease is over", "error", err)
		}
		r.disconnect()
	})
}

func (r *Replica) String() string { return fmt.Sprintf("replica %s", r.opts.Name) }

// Visit returns a Replica for a process that uses the database beside the replicas, such as a command. This process has
// no shares. The process only sends notices about its commits to the replicas.
func (s *Store) Visit() store.Replica { return visitor{s} }

// visitor is a process without claims.
type visitor struct{ store *Store }

func (visitor) Shares() store.Shares                 { return 0 }
func (visitor) Changed() <-chan struct{}             { return nil }
func (visitor) Since(int) (since time.Time, ok bool) { return time.Time{}, false }
func (visitor) Alive() int                           { return 1 }
func (visitor) Hears() time.Time                     { return time.Time{} }
func (visitor) Notices() <-chan store.Notice         { return nil }
func (visitor) Enter(context.Context, string) (inner context.Context, leave func(), ok bool) {
	return nil, nil, false
}

// Tell sends the notice before Tell returns, because the process may end soon.
func (v visitor) Tell(n store.Notice) { _ = v.store.notify(context.Background(), sent{Notice: n}) }
