package storecmd

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"countersign/cmd/countersign/auditcmd"
	"countersign/cmd/countersign/cli"
	"countersign/store"
	"countersign/store/bolt"
)

// checked is a store whose Check returns a certain error.
type checked struct {
	store.Store
	err error
}

func (c checked) Check(context.Context) error { return c.err }

// A check that could not read the store finds no faults, so the operator can't accept them.
func TestCheckThatCouldNotRead(t *testing.T) {
	s, err := bolt.Open(filepath.Join(t.TempDir(), "store.db"), bolt.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	for _, x := range []struct {
		err   error
		fault bool
	}{
		{fmt.Errorf("%w: connection refused", store.ErrUnavailable), false},
		{fmt.Errorf("check: %w", &fs.PathError{Op: "read", Path: "store.db", Err: syscall.EIO}), false},
		{fmt.Errorf("%w (%w)", store.ErrDamaged, syscall.EIO), true},
		{errors.New("store: the check found faults: a row of an index is missing"), true},
	} {
		var c copied
		err := c.checkWith(t.Context(), checked{s, x.err}, auditcmd.TrustedKeys{})
		if x.fault && (err != nil || cli.Code(c.faults) != cli.ExitNo) || !x.fault && (cli.Code(err) != cli.ExitFailed || c.faults != nil) {
			t.Errorf("%v: got error %v and faults %v", x.err, err, c.faults)
		}
		if x.fault && !strings.Contains(c.report, strings.TrimPrefix(x.err.Error(), "store: the check found faults: ")) {
			t.Errorf("%v: the report is %s", x.err, c.report)
		}
	}
}
