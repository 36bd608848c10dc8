package store

import (
	"errors"
	"time"
)

// Policy says which policy and which pins are in force. There is one for the whole store, and each Put replaces it.
// What it names is kept beside it: see Reader.PolicyContent.
type Policy struct {
	Load    string     `json:"load"`    // a random id of this change: two changes never have the same
	Version uint64     `json:"version"` // the number of the change, from 1
	Policy  PolicyPart `json:"policy"`  // the policy file, and the files that it names
	Pins    PolicyPart `json:"pins"`    // the lock file
	Record  uint64     `json:"record"`  // the Seq of the audit record of this change, in the chain of the installation
}

// PolicyPart is one of the two parts that come into force independently of each other.
type PolicyPart struct {
	Digest string    `json:"digest"` // hex SHA-256; empty: there is none
	By     string    `json:"by"`     // the process that loaded it
	At     time.Time `json:"at"`
}

// ErrPolicyChanged says that the policy in force is not the one that a transaction was to decide by, and can't be used
// by this process. Nothing was written.
var ErrPolicyChanged = errors.New("store: another policy is in force")
