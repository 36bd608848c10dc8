package postgres

import (
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"

	"countersign/store"
)

// A failover to an asynchronous standby may lose the last transactions. So each replica remembers the newest signed
// head, and compares the database with it: on each new connection of the pool, once a second, and before it signs a
// head. If the database lacks the head, the store stops. A failover ends all connections, so no transaction runs
// without the comparison.

// readNewest adds a read of the database's newest head to a batch.
func readNewest(b *pgx.Batch, to *store.Head) {
	rows("SELECT number, size, note FROM audit_heads ORDER BY number DESC LIMIT 1", nil, func(found pgx.Rows) error {
		var number, size int64
		var note []byte
		err := found.Scan(&number, &size, &note)
		*to = store.Head{Number: uint64(number), Size: uint64(size), Note: string(note)}
		return err
	})(b)
}

// saw remembers a head of the database.
func (s *Store) saw(h store.Head) {
	for {
		before := s.newest.Load()
		if before != nil && before.Number >= h.Number || s.newest.CompareAndSwap(before, &h) {
			return
		}
	}
}

// mustHaveNewest stops the store if the database lacks the newest head.
func (s *Store) mustHaveNewest(ctx context.Context, conn *pgx.Conn) error {
	newest := s.newest.Load()
	if newest == nil {
		return nil
	}
	var note []byte
	err := conn.QueryRow(ctx, "SELECT note FROM audit_heads WHERE number = $1", number(newest.Number)).Scan(&note)
	if errors.Is(err, pgx.ErrNoRows) || err == nil && string(note) != newest.Note {
		return s.rewound(*newest)
	}
	return err
}

// rewound stops the store, because the database lacks a head.
func (s *Store) rewound(lacks store.Head) error {
	err := fmt.Errorf("%w: %s does not have the signed head %d any more. A standby that lacked the last transactions was promoted, or an older copy was put in place. "+
		"The next start compares the database with this machine's heads file", store.ErrRewound, s.config.name(), lacks.Number)
	s.stopped(err)
	return err
}

// Newest returns the newest signed head that this process has signed or seen.
func (s *Store) Newest() (h store.Head, ok bool) {
	if n := s.newest.Load(); n != nil {
		return *n, true
	}
	return h, false
}
