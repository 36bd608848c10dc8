package main

import (
	"context"
	"errors"
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	"countersign/cmd/countersign/policyfile"
	"countersign/store"
)

// board decides which replica has which share. The replicas run in faked time, so their store is a file, and not a
// database. A share moves only while no work in the share is in progress. Therefore the store never has to refuse a
// transaction of a replica that has lost a share. TestLeaseFaults and TestReplicas test such refusals.
type board struct {
	mu       sync.Mutex
	replicas []*boardReplica
	owner    [store.ShareCount]*boardReplica
	wanted   [store.ShareCount]*boardReplica // the replica that gets the share when the share has no work in progress
	work     [store.ShareCount]int
	since    [store.ShareCount]time.Time
	moved    int
}

// boardReplica is one replica on a board.
type boardReplica struct {
	board   *board
	joined  time.Time
	changed chan struct{}
	notices chan store.Notice
}

var _ store.Replica = (*boardReplica)(nil)

// join adds a replica, and divides the shares evenly among all replicas.
func (b *board) join() *boardReplica {
	b.mu.Lock()
	defer b.mu.Unlock()
	r := &boardReplica{board: b, joined: time.Now(), changed: make(chan struct{}), notices: make(chan store.Notice, 10_000)}
	b.replicas = append(b.replicas, r)
	b.divide()
	return r
}

func (b *board) leave(r *boardReplica) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.replicas = slices.DeleteFunc(b.replicas, func(other *boardReplica) bool { return other == r })
	b.divide()
}

// divide divides the shares evenly among the replicas. The caller holds mu.
func (b *board) divide() {
	for share := range b.wanted {
		b.wanted[share] = nil
		if n := len(b.replicas); n > 0 {
			b.wanted[share] = b.replicas[share%n]
		}
	}
	b.move()
}

// shuffle gives some shares to other replicas.
func (b *board) shuffle(random *rand.Rand, n int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for range n {
		b.wanted[random.IntN(store.ShareCount)] = b.replicas[random.IntN(len(b.replicas))]
	}
	b.move()
}

// The method "move" gives shares to the replicas that should have them. A share with work in progress stays. The caller
// holds mu.
func (b *board) move() {
	told := map[*boardReplica]bool{}
	for share, to := range b.wanted {
		from := b.owner[share]
		if from == to || b.work[share] > 0 {
			continue
		}
		b.owner[share], b.since[share] = to, time.Now()
		b.moved++
		told[from], told[to] = true, true
	}
	for r := range told {
		if r != nil {
			close(r.changed)
			r.changed = make(chan struct{})
		}
	}
}

func (r *boardReplica) Shares() (shares store.Shares) {
	r.board.mu.Lock()
	defer r.board.mu.Unlock()
	for share, owner := range r.board.owner {
		if owner == r {
			shares = shares.With(share)
		}
	}
	return shares
}

func (r *boardReplica) Enter(ctx context.Context, claim string) (inner context.Context, leave func(), ok bool) {
	b := r.board
	b.mu.Lock()
	defer b.mu.Unlock()
	for share, owner := range b.owner {
		if store.ShareClaim(share) != claim {
			continue
		}
		if owner != r {
			return nil, nil, false
		}
		b.work[share]++
		return ctx, func() {
			b.mu.Lock()
			defer b.mu.Unlock()
			b.work[share]--
			b.move()
		}, true
	}
	return ctx, func() {}, b.replicas[0] == r // only one replica does a claimed job: the first replica
}

func (r *boardReplica) Changed() <-chan struct{} {
	r.board.mu.Lock()
	defer r.board.mu.Unlock()
	return r.changed
}

func (r *boardReplica) Since(share int) (since time.Time, ok bool) {
	r.board.mu.Lock()
	defer r.board.mu.Unlock()
	return r.board.since[share], r.board.owner[share] == r
}

func (r *boardReplica) Alive() int {
	r.board.mu.Lock()
	defer r.board.mu.Unlock()
	return len(r.board.replicas)
}

func (r *boardReplica) Hears() time.Time { return r.joined }

func (r *boardReplica) Notices() <-chan store.Notice { return r.notices }

func (r *boardReplica) Tell(n store.Notice) {
	r.board.mu.Lock()
	defer r.board.mu.Unlock()
	for _, other := range r.board.replicas {
		if other == r {
			continue
		}
		select {
		case other.notices <- n:
		default: // the other replica loses this notice
		}
	}
}

// startReplica starts a bot that shares the work with the other bots.
func (b *synctestHarness) startReplica() *running {
	b.Helper()
	s := b.setup
	s.tools = catalogOf(b.tools())
	var err error
	s.policies, err = policyfile.New("policy.yaml", []byte(b.policy), s.tools, s.log)
	b.ok(err)
	s.policies.Shared = true
	r := b.board.join()
	s.replica = r
	bot := b.begin(s)
	b.others = append(b.others, replicaBot{bot, r})
	return bot
}

// replicaBot is one of several bots.
type replicaBot struct {
	*running
	replica *boardReplica
}

func (b *synctestHarness) bots() (bots []*running) {
	if b.board == nil {
		return []*running{b.bot}
	}
	for _, r := range b.others {
		bots = append(bots, r.running)
	}
	return bots
}

func (b *synctestHarness) endAll() (err error) {
	if b.board == nil {
		return b.bot.end()
	}
	for len(b.others) > 0 {
		err = errors.Join(err, b.endReplica())
	}
	return err
}

// endReplica ends the bot that has been running for the longest time.
func (b *synctestHarness) endReplica() error {
	r := b.others[0]
	err := r.end()
	b.others = b.others[1:]
	b.board.leave(r.replica)
	return err
}
