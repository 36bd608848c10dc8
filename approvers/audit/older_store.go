package audit

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"

	"countersign/approvers"
	"countersign/store"
)

// OlderStore is the error for a store that somebody replaced by an old copy or by another store. Such a store lacks
// the newest head of the heads file, or the store was restored from a dump. A bot on this store could repeat runs,
// because the store has no record of these runs.
type OlderStore struct {
	store, file string         // paths
	database    bool           // the store is a database
	Number      uint64         // number of the newest head that the store lacks; 0: the database was restored or copied, but lacks no head
	Head        approvers.Head // the newest head that the store lacks; zero: the file has only the beginning of this head
	Hash        approvers.Sum  // hash of the text of this head
	last        uint64         // the number of the store's last head; 0: the store has no heads
}

func (o *OlderStore) Error() string {
	const until = ". Nothing runs, and nothing is accepted from Slack, until an operator does one of the following. "
	if o.database {
		text := o.What() + until + "Is this the wrong database, or is there a newer backup? Stop the bot, and put the right one in place; or name it with COUNTERSIGN_STORE. " +
			"Is everything that it lacks lost, or unknown? Stop the bot, and close everything that could act twice: countersign restore --database"
		if o.Number == 0 {
			text += ". Is it certain that no bot has worked on the original since? Stop the bot, and say so: countersign restore --database --nothing-lost --reason WHY"
		}
		return text
	}
	return o.What() + until + "Is this the wrong file? Stop the bot, and put the right file back; " +
		"or name the right files with COUNTERSIGN_STORE and COUNTERSIGN_AUDIT_HEADS. Is there a newer backup? Stop the bot, and restore it: countersign restore FILE. " +
		fmt.Sprintf("Is everything that this store lacks lost for good? Accept the loss, which closes everything that could act twice: countersign audit accept-loss --head %d --reason WHY", o.Number)
}

// What describes the difference between the store and the heads. Unlike the text of Error, the result contains no
// advice.
func (o *OlderStore) What() string {
	if o.Number == 0 {
		return o.store + " was restored from a dump, or copied from another database, and what happened in the original since then is unknown"
	}
	kept := fmt.Sprintf("the signed heads in %s end with head %d", o.file, o.Number)
	if o.Head.Number > 0 {
		kept += fmt.Sprintf(" over %s, of %s", count(int(o.Head.Size), "record"), moment(o.Head.At))
	}
	switch {
	case o.last == 0:
		return fmt.Sprintf("%s has no signed head, and %s", o.store, kept)
	case o.last < o.Number:
		return fmt.Sprintf("%s ends with head %d, and %s", o.store, o.last, kept)
	}
	return fmt.Sprintf("%s ends with head %d, and its head %d is not the one in the file: %s", o.store, o.last, o.Number, kept)
}

// FindOlder compares a store with its file of heads. This file is beside the store or elsewhere on this machine.
// FindOlder returns nil if the store has the newest of these heads, and is not a restored or copied database.
func FindOlder(ctx context.Context, path string, heads string, s store.Store) (*OlderStore, error) {
	older, err := olderThanHeads(ctx, path, heads, s)
	place, database := s.(store.Relocatable)
	if err != nil || !database {
		return older, err
	}
	if older != nil {
		older.database = true
		return older, nil
	}
	relocated, err := place.Relocated(ctx)
	if err != nil || !relocated {
		return nil, err
	}
	return &OlderStore{store: path, database: true}, nil
}

// olderThanHeads returns nil if the store has the newest of the heads in a file.
func olderThanHeads(ctx context.Context, path string, heads string, s store.Store) (*OlderStore, error) {
	if heads == "" {
		return nil, nil
	}
	_, err := HeadFile(heads).Last(ctx, s)
	var ahead *aheadError
	switch {
	case errors.As(err, &ahead):
		return &OlderStore{store: path, file: heads, Number: ahead.number, Head: ahead.head, Hash: ahead.hash, last: ahead.last}, nil
	case err != nil:
		return nil, fmt.Errorf("whether %s is older than the signed heads in %s is unknown: %w. Make that file readable for the user that runs the bot, "+
			"or name the right file with COUNTERSIGN_AUDIT_HEADS", path, heads, err)
	}
	return nil, nil
}

// StillNewest checks a store whose file was moved away. If another bot has signed heads on a copy of the store in the
// meantime, StillNewest returns an error. In this case, nobody may use the given store.
func StillNewest(path string, heads string, s store.Store) error {
	older, err := FindOlder(context.Background(), path, heads, s)
	if err != nil || older == nil {
		return err
	}
	return fmt.Errorf("another bot has continued with a copy of this store: %s. Stop this bot and start it again: it will refuse to run, and say what to do", older.What())
}

// MayCreate returns an error if there is no store at path, but the file of heads contains heads. In this case, an
// earlier store was lost or moved, so no new store may be created at path.
func MayCreate(path string, heads string) error {
	if _, err := os.Stat(path); !errors.Is(err, fs.ErrNotExist) || heads == "" {
		return nil
	}
	number, err := HeadFile(heads).newestHead()
	if err != nil {
		return fmt.Errorf("there is no store at %s, and whether there was one is unknown: the signed heads in %s can't be read: %w", path, heads, err)
	}
	if number == 0 {
		return nil
	}
	return fmt.Errorf("there is no store at %s, and the signed heads in %s end with head %d: the store's file was removed or renamed, or COUNTERSIGN_STORE names another file. "+
		"Put the file back, or restore a backup: countersign restore FILE. To start again without that history, move the heads away first, and keep them: mv %s %s.kept",
		path, heads, number, heads, heads)
}
