package audit

import (
	"context"
	"slices"
	"strings"
	"time"

	"countersign/approvers"
	"countersign/store"
)

// Observed counts one tool's calls that did not run because of observe mode. Without observe mode, the policy would
// have given all of these calls the verdict in the field Would and the stages in the field Stages.
type Observed struct {
	Tool, Would, Stages string
	N                   int
	Last                time.Time
}

// ReadObserved counts the calls that were made in observe mode since the given time. The largest count comes first.
func ReadObserved(ctx context.Context, s store.Store, from time.Time) ([]Observed, error) {
	var all []Observed
	err := EachChain(ctx, s, func(records []approvers.AuditRecord) error {
		at := slices.IndexFunc(records, func(r approvers.AuditRecord) bool {
			return r.Kind == approvers.AuditProposed && r.Facts["verdict"] == string(approvers.Observed) && !r.At.Before(from)
		})
		if at < 0 {
			return nil
		}
		r := records[at]
		i := slices.IndexFunc(all, func(o Observed) bool {
			return o.Tool == r.Facts["tool"] && o.Would == r.Facts["would"] && o.Stages == r.Facts["stages"]
		})
		if i < 0 {
			all = append(all, Observed{Tool: r.Facts["tool"], Would: r.Facts["would"], Stages: r.Facts["stages"]})
			i = len(all) - 1
		}
		all[i].N++
		if r.At.After(all[i].Last) {
			all[i].Last = r.At
		}
		return nil
	})
	slices.SortFunc(all, func(a, b Observed) int {
		if a.N != b.N {
			return b.N - a.N
		}
		return strings.Compare(a.Tool+a.Would+a.Stages, b.Tool+b.Would+b.Stages)
	})
	return all, err
}
