package store

import (
	"errors"
	"time"
)

// Policy says which policy file and which lock file (pins) are in force. The store has one Policy. Each PutPolicy
// replaces the Policy. The contents of the files are stored separately: see Reader.PolicyContent.
type Policy struct {
	Load    string     `json:"load"`    // random id of this change; no two changes have the same id
	Version uint64     `json:"version"` // the number of the change, from 1
	Policy  PolicyPart `json:"policy"`  // the policy file and the files that it names
	Pins    PolicyPart `json:"pins"`    // the lock file
	Record  uint64     `json:"record"`  // the Seq of the audit record of this change, in the chain of the installation
	// Content is the SHA-256 of the content, in hex. An earlier version of the program left it empty.
	Content string `json:"content,omitempty"`
}

// PolicyPart describes the policy or the pins. The policy and the pins come into force independently of each other.
type PolicyPart struct {
	Digest string    `json:"digest"` // SHA-256 in hex; empty: there is no such part
	By     string    `json:"by"`     // the process that loaded the part
	At     time.Time `json:"at"`
}

// ErrPolicyChanged says that the policy in force is not the policy that a transaction expected. Nothing was written.
// The workflow loads the policy in force and retries. If this process can't use that policy, the workflow returns
// ErrPolicyChanged.
var ErrPolicyChanged = errors.New("store: another policy is in force")
