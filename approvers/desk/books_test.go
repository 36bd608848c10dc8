package desk_test

import (
	"context"
	"errors"

	"countersign/approvers/desk/books"
	"countersign/store"
)

// books checks what must be true of the store at any moment between two transactions, for the turns that the test began.
func (o *office) books() {
	o.t.Helper()
	if err := o.faults(); err != nil {
		o.t.Errorf("the books do not add up:\n%v", err)
	}
}

func (o *office) faults() error {
	ctx := context.Background()
	return errors.Join(o.store.Check(ctx), o.store.View(ctx, func(r store.Reader) error { return books.Faults(r, o.turns) }))
}

func b2i(b bool) int {
	if b {
		return 1
	}
	return 0
}
