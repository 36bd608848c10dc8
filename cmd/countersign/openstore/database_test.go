package openstore

import (
	"errors"
	"fmt"
	"testing"

	"countersign/cmd/countersign/cli"
	"countersign/store"
	"countersign/store/postgres"
)

// If somebody has to change the set-up, such as a server that is too old, the exit code is that of wrong usage. If the
// database can't be used now, the exit code says that the command could not run.
func TestDatabaseError(t *testing.T) {
	for reason, want := range map[error]int{
		postgres.ErrServer: cli.ExitUsage, postgres.ErrURL: cli.ExitUsage, postgres.ErrAccess: cli.ExitUsage, postgres.ErrOlder: cli.ExitUsage,
		postgres.ErrEmpty: cli.ExitUsage, store.ErrNewer: cli.ExitUsage, store.ErrForeign: cli.ExitUsage, store.ErrIncomplete: cli.ExitUsage,
		store.ErrUnavailable: cli.ExitFailed, store.ErrFull: cli.ExitFailed, store.ErrLocked: cli.ExitFailed, postgres.ErrOldReplicas: cli.ExitFailed,
	} {
		err := DatabaseError(fmt.Errorf("%w: the database x", reason))
		if got := cli.Code(err); got != want || !errors.Is(err, reason) {
			t.Errorf("%v: got exit code %d, want %d", err, got, want)
		}
	}
}
