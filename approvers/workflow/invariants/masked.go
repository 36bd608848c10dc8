package invariants

import (
	"errors"
	"fmt"
	"slices"

	"countersign/approvers"
	"countersign/store"
)

// maskedValuesWereSeen finds open requests that a person approved without having seen the masked values.
func maskedValuesWereSeen(r store.Reader) error {
	requests, err := r.OpenRequests(store.RequestCursor{}, most)
	if err != nil {
		return err
	}
	var faults []error
	for _, req := range requests {
		if req.Plan.Blind || !approvers.HasSecrets(req.Args, req.Secrets) {
			continue
		}
		for _, d := range req.ValidApprovals() {
			seen := slices.ContainsFunc(req.Revealed, func(v approvers.Reveal) bool { return v.By == d.By && v.Digest == d.Digest })
			if !seen && !d.BreakGlass {
				faults = append(faults, fmt.Errorf("request %s was approved by %s, who has not seen its masked values", req.ID, d.By))
			}
		}
	}
	return errors.Join(faults...)
}
