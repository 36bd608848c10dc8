package audit

import (
	"cmp"
	"errors"
	"fmt"
	"slices"

	"countersign/approvers"
)

// keptHead is a head from outside of the store, with its file and line.
type keptHead struct {
	approvers.KeptHead
	approvers.Head
	place string
}

// KeptHeads are heads that are kept outside of the store. The zero value has no heads.
type KeptHeads struct {
	heads  []keptHead
	faults []error // texts that are not heads
}

// Add reads the heads in a text: a file of heads, a log, or messages of a channel. The parameter name identifies the
// text in the report. A text without a head is an error.
func (all *KeptHeads) Add(name, text string) error {
	kept, faults := approvers.KeptHeads(text)
	if len(kept) == 0 {
		return errors.Join(faults...)
	}
	for _, f := range faults {
		all.faults = append(all.faults, fmt.Errorf("%s: %w", name, f))
	}
	for _, k := range kept {
		head, err := approvers.ReadHead(k.Note)
		if err != nil {
			return err
		}
		all.heads = append(all.heads, keptHead{KeptHead: k, Head: head, place: fmt.Sprintf("%s:%d", name, k.Line)})
	}
	slices.SortStableFunc(all.heads, func(a, b keptHead) int { return cmp.Compare(a.Number, b.Number) })
	return nil
}
