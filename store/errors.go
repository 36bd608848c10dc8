package store

import "errors"

// Transactions return these errors.
var (
	// ErrNotFound says that the record does not exist.
	ErrNotFound = errors.New("store: no such record")
	// ErrConflict says that a write does not fit the stored state. For example, another transaction has changed the
	// record, or the record already exists.
	ErrConflict = errors.New("store: the record was changed by somebody else")
	// ErrCommitUnknown says that the commit failed. The writes may or may not be durable.
	ErrCommitUnknown = errors.New("store: it is unknown whether the commit is durable")
	// ErrClosed says that the store was closed.
	ErrClosed = errors.New("store: closed")
)

// These errors concern a store's file or database. The error that wraps one of them tells the operator what to do.
var (
	// ErrLocked says that another process holds the store.
	ErrLocked = errors.New("store: in use by another process")
	// ErrForeign says that the file or database is not a store of Countersign.
	ErrForeign = errors.New("store: not a Countersign store")
	// ErrDamaged says that stored data is not as the store wrote it. For example, the file was truncated or
	// overwritten.
	ErrDamaged = errors.New("store: the file is damaged")
	// ErrNewer says that a newer version of Countersign wrote the store.
	ErrNewer = errors.New("store: written by a newer version of Countersign")
	// ErrIncomplete says that the store is incomplete, because a copy into it was interrupted.
	ErrIncomplete = errors.New("store: it is an incomplete copy")
	// ErrChanged says that an interrupted copy can't be continued: it is not of this original, or the original has
	// changed in the meantime.
	ErrChanged = errors.New("store: the interrupted copy is not of this original, or the original has changed since")
	// ErrFull says that the disk is full, and that nothing was written. Reads work. Writes work once there is free
	// space.
	ErrFull = errors.New("store: the disk is full")
	// ErrMoved says that the file of an open store was removed, renamed or replaced. Nothing was written. Reads work.
	// Writes work once the original file is back at its path.
	ErrMoved = errors.New("store: the file is not at its path any more")
	// ErrRewound says that a database lacks a signed head that it had before. For example, a standby that lacked the
	// head has become the primary.
	ErrRewound = errors.New("store: the database is older than before")
	// ErrUnavailable says that the database can't be reached, or does not accept writes. Nothing was written. Reads and
	// writes work once the database is available.
	ErrUnavailable = errors.New("store: the database is not available")
)

// Refused reports whether the error means that a write was refused for a temporary reason. Nothing was written, and the
// store stays open.
func Refused(err error) bool {
	return errors.Is(err, ErrFull) || errors.Is(err, ErrMoved) || errors.Is(err, ErrUnavailable) || errors.Is(err, ErrPolicyChanged)
}

// OnlyDamaged reports whether a transaction failed because of a damaged record. Such a transaction wrote nothing.
func OnlyDamaged(err error) bool {
	return errors.Is(err, ErrDamaged) && !errors.Is(err, ErrCommitUnknown)
}

// IgnoreNotFound returns nil for ErrNotFound. IgnoreNotFound returns other errors unchanged.
func IgnoreNotFound(err error) error {
	if errors.Is(err, ErrNotFound) {
		return nil
	}
	return err
}
