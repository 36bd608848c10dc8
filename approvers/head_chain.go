package approvers

import (
	"fmt"
	"slices"
)

// HeadChain verifies heads one after the other: their numbers, their links, and who signed them.
type HeadChain struct {
	// Named lists the public keys that the operator trusts. If it is empty, the first head's own key is trusted.
	Named []string

	key  string   // the current signing key
	keys []string // all signing keys
	last Head
	sum  Sum // hash of the last note
}

// Key returns the public key that signed the last head.
func (c *HeadChain) Key() string { return c.key }

// Keys returns all public keys that signed heads.
func (c *HeadChain) Keys() []string { return slices.Clone(c.keys) }

// Last returns the last head.
func (c *HeadChain) Last() Head { return c.last }

// Next verifies the head that is stored next, with its size. It returns the faults that it finds, and continues with
// the data that it could read.
func (c *HeadChain) Next(number, size uint64, signed string) (Head, []error) {
	var faults []error
	fault := func(format string, args ...any) {
		faults = append(faults, fmt.Errorf("head %d: %w", number, fmt.Errorf(format, args...)))
	}
	h, err := ReadHead(signed)
	if err != nil {
		fault("it can't be read: %w", err)
		c.last.Number, c.sum = number, SumOf([]byte(signed))
		return Head{}, faults
	}
	switch {
	case h.Number != number || number != c.last.Number+1:
		fault("it says that it is head %d, and comes after head %d: a head is missing or out of order", h.Number, c.last.Number)
	case number == 1 && h.Before != Sum{}, number > 1 && h.Before != c.sum:
		fault("it does not follow head %d: one of the two was replaced", c.last.Number)
	case h.Size != size || h.Size <= c.last.Size:
		fault("it covers %d records, is stored for %d, and comes after a head over %d", h.Size, size, c.last.Size)
	case c.last.Origin != "" && h.Origin != c.last.Origin:
		fault("it is of another installation: %s in the place of %s", h.Origin, c.last.Origin)
	}
	if err := c.signed(h, signed); err != nil {
		fault("%w", err)
	}
	c.last, c.sum = h, SumOf([]byte(signed))
	return h, faults
}

// signed verifies the signatures against the keys that may have made them.
func (c *HeadChain) signed(h Head, signed string) error {
	before := c.key
	if h.Key != "" {
		c.key = h.Key // even an untrusted key, so that the remaining heads are verified too
		c.keys = append(c.keys, h.Key)
	}
	switch {
	case c.key == "":
		return fmt.Errorf("its key is unknown: the head that introduced the key is missing")
	case h.Key == "":
		_, err := OpenHead(signed, c.key)
		return err
	case h.After != before:
		return fmt.Errorf("it replaces the key %q, but the key so far was %q", h.After, before)
	case before == "": // the first key
		if len(c.Named) > 0 && !slices.Contains(c.Named, h.Key) {
			return fmt.Errorf("it is signed by the key %s, which is not trusted", h.Key)
		}
		_, err := OpenHead(signed, h.Key)
		return err
	}
	if _, err := OpenHead(signed, h.Key, before); err == nil {
		return nil // the old key signed that the new one takes over
	}
	if _, err := OpenHead(signed, h.Key); err != nil {
		return err
	}
	if !slices.Contains(c.Named, before) || !slices.Contains(c.Named, h.Key) {
		return fmt.Errorf("the key %s replaces %s, which did not sign the change. If the old key was lost, name both with --key", h.Key, before)
	}
	return nil
}
