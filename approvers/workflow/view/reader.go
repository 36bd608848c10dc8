package view

import (
	"time"

	"countersign/approvers"
	"countersign/store"
)

// Reader reads the stored state. Reader is safe for use by many goroutines.
type Reader struct {
	store  store.Store
	policy func() *approvers.Policy
	hash   func(tool string) string
	now    func() time.Time
}

// New returns a reader of a store. The function policy returns the policy in force. The function hash returns the hash
// of a tool's definition, or "" if the tool can't be called. The function "now" returns the time in the precision of
// the store.
func New(s store.Store, policy func() *approvers.Policy, hash func(tool string) string, now func() time.Time) *Reader {
	return &Reader{store: s, policy: policy, hash: hash, now: now}
}

// Policy returns the policy in force.
func (v *Reader) Policy() *approvers.Policy { return v.policy() }
