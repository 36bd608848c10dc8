package store

import "errors"

// Errors of a transaction.
var (
	// ErrNotFound says that there is no such record.
	ErrNotFound = errors.New("store: no such record")
	// ErrConflict says that the record was changed since it was read, or exists already.
	ErrConflict = errors.New("store: the record was changed by somebody else")
	// ErrCommitUnknown says that the commit failed in a way that leaves open whether it is durable.
	ErrCommitUnknown = errors.New("store: it is unknown whether the commit is durable")
	// ErrClosed says that the store was closed.
	ErrClosed = errors.New("store: closed")
)

// Errors of a store's file. The wrapping error says what to do.
var (
	// ErrLocked says that another process holds the store.
	ErrLocked = errors.New("store: in use by another process")
	// ErrForeign says that the file is something else than a store of Countersign.
	ErrForeign = errors.New("store: not a Countersign store")
	// ErrDamaged says that the file does not hold together: it was cut off or overwritten.
	ErrDamaged = errors.New("store: the file is damaged")
	// ErrNewer says that a newer version of Countersign wrote the store.
	ErrNewer = errors.New("store: written by a newer version of Countersign")
	// ErrFull says that the disk is full. Reads go on, and writes do once space is freed.
	ErrFull = errors.New("store: the disk is full")
)
