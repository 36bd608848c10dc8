package store

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"strings"
	"time"
)

// Several processes ("replicas") can work on one store. The timers are divided into a fixed number of shares. Each
// share belongs to one replica at a time: the replica that has the claim on the share. A replica handles only the
// timers of its own shares. Every transaction of a handler checks the claim. So a replica that has lost a claim can't
// write, even before the replica detects the loss.

// ShareCount is the number of shares. ShareCount must never change, because replicas with different versions of the
// program may work on one store.
const ShareCount = 64

// Shares is a set of shares, which are numbered from 0.
type Shares uint64

// AllShares has every share.
const AllShares = ^Shares(0)

// Has reports whether a share is in the set.
func (s Shares) Has(share int) bool { return s&(1<<share) != 0 }

// With returns the set with a share added.
func (s Shares) With(share int) Shares { return s | 1<<share }

// Share returns the share of a timer. Timers with the same Affinity are in the same share. If Affinity is empty, timers
// with the same Lane are in the same share. If Lane is also empty, Ref determines the share.
func (t Timer) Share() int {
	by := t.Ref
	switch {
	case t.Affinity != "":
		by = t.Affinity
	case t.Lane != "":
		by = t.Lane
	}
	by = strings.Map(func(c rune) rune { // removes characters that PostgreSQL would store in another form, because package postgres also computes the share, in SQL
		if c <= 2 {
			return -1
		}
		return c
	}, by)
	sum := sha256.Sum256([]byte(by))
	return int(sum[0]) % ShareCount
}

// Claim is the exclusive right of one replica to do some work. The work is either the timers of one share, or a named
// job that only one replica may do.
type Claim struct {
	Name  string
	Owner string // the replica's id
	Epoch int64  // increases each time the claim gets an owner
}

// ShareClaim returns the name of the claim on a share.
func ShareClaim(share int) string { return fmt.Sprintf("share-%02d", share) }

// ErrFenced says that this replica has lost the claim on the work, and that another replica does the work. If Update
// returns ErrFenced, the transaction wrote nothing. ErrFenced is also the cause with which Replica.Enter cancels a
// context.
var ErrFenced = errors.New("store: another replica has taken over this work")

// claimsKey is the context key of claims.
type claimsKey struct{}

// WithClaims returns a context with claims. In this context, Update fails with ErrFenced if the replica has lost one of
// the claims.
func WithClaims(ctx context.Context, claims ...Claim) context.Context {
	return context.WithValue(ctx, claimsKey{}, claims)
}

// ClaimsOf returns the claims of a context.
func ClaimsOf(ctx context.Context) []Claim {
	claims, _ := ctx.Value(claimsKey{}).([]Claim)
	return claims
}

// Replica represents this process among the processes that work on a store.
type Replica interface {
	// Shares returns the shares whose work may begin now.
	Shares() Shares
	// Enter begins work under a claim. If the replica may not begin work under this claim, ok is false. inner is a
	// context with the claim, for the transactions of the work. When the replica may have lost the claim, inner is
	// cancelled with the cause ErrFenced. The caller must call leave when the work has ended.
	Enter(ctx context.Context, claim string) (inner context.Context, leave func(), ok bool)
	// Changed returns a channel that is closed when the result of Shares changes.
	Changed() <-chan struct{}
	// Since returns the time at which the replica got a share, by the clock of this machine. If the replica does not have
	// the share, ok is false.
	Since(share int) (since time.Time, ok bool)
	// Alive returns how many replicas work on the store, including this replica.
	Alive() int
	// Hears returns the time since which the replica has received other replicas' notices without interruption. If the
	// replica can't receive notices now, the time is zero.
	Hears() time.Time
	// Tell sends a notice to the other replicas. Tell does not wait for the notice's arrival, and the notice may be
	// lost.
	Tell(n Notice)
	// Notices returns the notices of the other replicas.
	Notices() <-chan Notice
}

// Notice describes what a commit of a replica has changed. From the notice, the other replicas learn of the change
// before they next read the store.
type Notice struct {
	Timers map[TimerKind]Shares `json:"timers,omitempty"` // for each kind of timer: the shares in which timers were set
	News   []string             `json:"news,omitempty"`   // other events, as strings that the sender chooses
}

// Merge adds the content of other to n.
func (n *Notice) Merge(other Notice) {
	if n.Timers == nil && len(other.Timers) > 0 {
		n.Timers = map[TimerKind]Shares{}
	}
	for kind, shares := range other.Timers {
		n.Timers[kind] |= shares
	}
	n.News = append(n.News, other.News...)
}

// Alone is the Replica of a process that is the only process on its store. This process has every claim, so no
// transaction needs to check a claim.
type Alone struct{}

// IsAlone reports whether r is of the type Alone.
func IsAlone(r Replica) bool {
	_, alone := r.(Alone)
	return alone
}

// Shares returns all shares.
func (Alone) Shares() Shares { return AllShares }

// Enter always succeeds.
func (Alone) Enter(ctx context.Context, _ string) (inner context.Context, leave func(), ok bool) {
	return ctx, func() {}, true
}

// Changed returns a channel that is never closed.
func (Alone) Changed() <-chan struct{} { return nil }

// Since returns the zero time, because the process has had every share since it started.
func (Alone) Since(int) (since time.Time, ok bool) { return time.Time{}, true }

// Alive returns 1.
func (Alone) Alive() int { return 1 }

// Hears returns the zero time.
func (Alone) Hears() time.Time { return time.Time{} }

// Tell does nothing.
func (Alone) Tell(Notice) {}

// Notices returns a channel on which no notice is ever sent.
func (Alone) Notices() <-chan Notice { return nil }
