package shop

import (
	"errors"
	"fmt"
)

// What can be wrong with a call. Test with errors.Is; the error's text is one
// sentence for people and for the model.
var (
	ErrInvalid  = errors.New("invalid arguments")
	ErrNotFound = errors.New("not found")
	ErrRefused  = errors.New("refused by a rule of the shop")
)

// What can be wrong with a key.
var (
	ErrNoKey     = errors.New("no idempotency key")
	ErrKeyReused = errors.New("idempotency key used for something else")
)

// What can be wrong with the file.
var (
	ErrForeignFile = errors.New("not a file of this shop")
	ErrNotSaved    = errors.New("the change could not be saved and did not happen")
)

// Problem is an error of a known kind with a sentence of its own.
type Problem struct {
	Kind     error
	Sentence string
}

func (p *Problem) Error() string { return p.Sentence }

// Unwrap lets errors.Is see the kind.
func (p *Problem) Unwrap() error { return p.Kind }

func problem(kind error, format string, args ...any) error {
	return &Problem{Kind: kind, Sentence: fmt.Sprintf(format, args...)}
}
