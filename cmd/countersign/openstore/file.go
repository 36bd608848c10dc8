package openstore

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"syscall"

	"countersign/approvers/audit"
	"countersign/cmd/countersign/cli"
	"countersign/config"
	"countersign/internal/visible"
	"countersign/store"
	"countersign/store/bolt"
)

// File opens the bolt file, and creates it if it does not exist. The errors of File tell the operator what to do.
func File(path string) (*bolt.Store, error) { return file(path, bolt.Options{}) }

func file(path string, opts bolt.Options) (*bolt.Store, error) {
	if info, err := os.Stat(path); err == nil && info.IsDir() {
		return nil, cli.Misused("the store %s is a directory; name a file in it", path)
	}
	db, err := bolt.Open(path, opts)
	if errors.Is(err, store.ErrDamaged) || errors.Is(err, store.ErrForeign) {
		err = fmt.Errorf("%w. Without a backup, copy what can be read: countersign store salvage FILE --to bolt:NEW.db", err)
	}
	if err != nil {
		return nil, FileError(err)
	}
	for _, x := range db.Damage() { // each damage is reported by the first command that finds it
		fmt.Fprintln(cli.Stderr, "the store is damaged: "+visible.Line(x.String()))
	}
	return db, nil
}

// ToWrite opens the bolt file like File. If signed heads are damaged, ToWrite restores them from the file of heads.
func ToWrite(ctx context.Context, path string, at config.Audit) (*bolt.Store, error) {
	db, err := File(path)
	if err != nil {
		return nil, err
	}
	restored, err := audit.RestoreHeads(ctx, at, db)
	if err != nil {
		return nil, errors.Join(cli.CouldNot("damaged signed heads can't be restored from %s: %w", at.Heads, err), db.Close())
	}
	for _, number := range restored {
		fmt.Fprintf(cli.Stderr, "signed head %d was damaged or missing, and is restored from %s\n", number, at.Heads)
	}
	return db, nil
}

// FileError adds exit codes to the errors of opening a store. A damaged store can't always be distinguished from a
// file of another kind. Therefore FileError does not treat these two cases as a wrong configuration.
func FileError(err error) error {
	for _, configured := range []error{store.ErrNewer, store.ErrIncomplete, fs.ErrNotExist, syscall.ENOTDIR} {
		if errors.Is(err, configured) {
			return cli.Misused("%w", err)
		}
	}
	return cli.CouldNot("%w", err)
}

// MustExist returns an error if the store does not exist. Commands call MustExist first, so that they don't create an
// empty store. If the store's signed heads exist, the error says that a store existed.
func MustExist(path, heads string) error {
	_, err := os.Stat(path)
	if errors.Is(err, fs.ErrNotExist) {
		if err := audit.MayCreate(path, heads); err != nil {
			return cli.Misused("%w", err)
		}
		return cli.Misused("there is no store at %s; set COUNTERSIGN_STORE to the one that serve uses, such as bolt:countersign.db", path)
	}
	if err != nil {
		return cli.CouldNot("the store can't be read: %w", err)
	}
	return nil
}
