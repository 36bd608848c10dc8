package store

import (
	"fmt"
	"unicode/utf8"

	"countersign/approvers"
)

// The backends share the functions of this file.

// CheckKey returns an error if a string can't be a part of a key: if the string is empty, invalid UTF-8, or longer than
// the given number of bytes. The parameter what names the key in the error.
func CheckKey(what, s string, longest int) error {
	switch {
	case s == "":
		return fmt.Errorf("store: a %s must not be empty", what)
	case !utf8.ValidString(s):
		return fmt.Errorf("store: the %s %q is not valid UTF-8", what, s)
	case len(s) > longest:
		return fmt.Errorf("store: the %s %.40q… has %d bytes; the most is %d", what, s, len(s), longest)
	}
	return nil
}

// ErasableConversation returns nil if EraseConversation may erase the conversation. If the conversation does not exist,
// the error is ErrNotFound. If it has a current turn, the error is ErrConflict.
func ErasableConversation(r Reader, id string) error {
	c, err := r.Conversation(id)
	if err == nil && c.Turn != "" {
		return fmt.Errorf("conversation %q has a current turn, %q: %w", id, c.Turn, ErrConflict)
	}
	return err
}

// ErasableTurn reads a turn that EraseTurn may erase. If the turn does not exist, the error is ErrNotFound. If it is the
// current turn of its conversation, the error is ErrConflict.
func ErasableTurn(r Reader, id string) (approvers.Turn, error) {
	turn, err := r.Turn(id)
	if err != nil {
		return turn, err
	}
	c, err := r.Conversation(turn.Conversation)
	if err == nil && c.Turn == id {
		return turn, fmt.Errorf("turn %q is the current turn of conversation %q: %w", id, c.ID, ErrConflict)
	}
	return turn, IgnoreNotFound(err)
}
