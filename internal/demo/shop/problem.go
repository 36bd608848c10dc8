package shop

import (
	"errors"
	"fmt"
)

// The kinds of errors of a call. Test for a kind with errors.Is. The error's text is one sentence for people and for
// the model.
var (
	ErrInvalid  = errors.New("invalid arguments")
	ErrNotFound = errors.New("not found")
	ErrRefused  = errors.New("refused by a rule of the shop")
)

// The kinds of errors about a call's idempotency key.
var (
	ErrNoKey     = errors.New("no idempotency key")
	ErrKeyReused = errors.New("idempotency key used for something else")
)

// The kinds of errors about the file that stores the shop.
var (
	ErrForeignFile = errors.New("not a file of this shop")
	ErrNotSaved    = errors.New("the change could not be saved and did not happen")
)

// Problem is an error with one of the kinds above, and with its own text.
type Problem struct {
	Kind     error
	Sentence string
}

func (p *Problem) Error() string { return p.Sentence }

// Unwrap returns the kind, for errors.Is.
func (p *Problem) Unwrap() error { return p.Kind }

func problem(kind error, format string, args ...any) error {
	return &Problem{Kind: kind, Sentence: fmt.Sprintf(format, args...)}
}
