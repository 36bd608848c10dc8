package postgres

import "countersign/store"

// reader is the read half of a transaction.
type reader struct{ run *run }

// tx is a transaction as seen by one closure.
type tx struct{ reader }

var (
	_ store.Reader = reader{}
	_ store.Tx     = &tx{}
)
