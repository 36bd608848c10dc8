package approvers

import (
	"fmt"
	"strings"
	"time"
	"unicode/utf8"
)

// AuditKind is the kind of an audit record.
type AuditKind string

// The kinds of audit record. docs/audit.md says who writes each of them, and when.
const (
	AuditProposed      AuditKind = "proposed"
	AuditShown         AuditKind = "shown"
	AuditDenied        AuditKind = "denied"  // somebody tried without authority, or too late
	AuditDecided       AuditKind = "decided" // approve, reject or modify
	AuditAdvanced      AuditKind = "advanced"
	AuditApproved      AuditKind = "approved"  // the last stage has its quorum
	AuditClosed        AuditKind = "closed"    // rejected, expired, withdrawn, revoked, voided or refused
	AuditReopened      AuditKind = "reopened"  // the policy became stricter after the approval
	AuditPreviewed     AuditKind = "previewed" // a tool was asked for a preview of a call, or answered
	AuditReplanned     AuditKind = "replanned" // the policy became stricter while it waited
	AuditEscalated     AuditKind = "escalated"
	AuditExecuting     AuditKind = "executing"
	AuditExecuted      AuditKind = "executed"
	AuditUnknown       AuditKind = "unknown"
	AuditReported      AuditKind = "reported"
	AuditReturned      AuditKind = "returned" // the result was handed to the model
	AuditReminded      AuditKind = "reminded" // people who had not decided were reminded
	AuditInvited       AuditKind = "invited"  // a person was added to the stage: handed on to, or standing in
	AuditAnswered      AuditKind = "answered" // a person answered a question from the model
	AuditElicited      AuditKind = "elicited" // a tool asked the requester a question during its run
	AuditReplied       AuditKind = "replied"  // that question ended: accepted, declined, cancelled or expired
	AuditAttached      AuditKind = "attached" // a run returned a file
	AuditRemarked      AuditKind = "remarked" // a question, an answer or a comment
	AuditAway          AuditKind = "away"     // a person set when they are away, in a chain of their own
	AuditGranted       AuditKind = "granted"  // a grant was offered, given, used, or ended, in its own chain
	AuditMessageEdited AuditKind = "reworded" // the message that led to it was edited or deleted after the agent had read it
	AuditPaused        AuditKind = "paused"   // somebody stopped every run and model call, in the installation's chain
	AuditResumed       AuditKind = "resumed"  // somebody resumed them
	AuditErased        AuditKind = "erased"   // payloads were erased; the records and their hashes stay
	AuditPruned        AuditKind = "pruned"   // a whole chain was removed because of its age, in the installation's chain
	AuditDamaged       AuditKind = "damaged"  // a stored record could not be read and was set aside or closed, in the installation's chain
	AuditRestored      AuditKind = "restored" // the store was put back from a backup, in the installation's chain
)

// AuditKinds lists all kinds.
var AuditKinds = []AuditKind{
	AuditProposed, AuditPreviewed, AuditShown, AuditDenied, AuditDecided, AuditAdvanced, AuditApproved,
	AuditClosed, AuditReopened, AuditReplanned, AuditEscalated, AuditExecuting, AuditExecuted,
	AuditUnknown, AuditReported, AuditReturned, AuditReminded, AuditInvited, AuditAnswered,
	AuditRemarked, AuditAway, AuditGranted, AuditPaused, AuditResumed, AuditErased,
	AuditPruned, AuditDamaged, AuditRestored, AuditMessageEdited, AuditElicited, AuditReplied, AuditAttached,
}

// InstallationChain is the chain for events that concern no single request: pauses, retention, restores.
const InstallationChain = "installation"

// AuditRecord is one entry of the hash-chained history. Chain is a request's id, or an execution's id if no approval
// was needed, so that writers of different requests don't wait for each other.
type AuditRecord struct {
	Chain       string            `json:"chain"`
	Seq         uint64            `json:"seq"` // from 1, without gaps
	At          time.Time         `json:"at"`
	Kind        AuditKind         `json:"kind"`
	Actor       PersonID          `json:"actor,omitempty"` // empty: the bot itself
	Facts       map[string]string `json:"facts,omitempty"` // names, states and digests; never arguments or texts
	PayloadHash string            `json:"payload_hash,omitempty"`
	Prev        string            `json:"prev,omitempty"`
	Hash        string            `json:"hash"`
}

// AuditPayload holds the data that a record's PayloadHash commits to: arguments, reasons, renderings. It is stored
// beside the record, so that it can be erased without breaking the chain. The salt prevents guessing the payload from
// its hash.
type AuditPayload struct {
	Chain string `json:"chain"`
	Seq   uint64 `json:"seq"`
	Salt  []byte `json:"salt"` // 16 random bytes
	Body  []byte `json:"body"`
}

// Hash returns the salted hash of the payload.
func (p AuditPayload) Hash() string { return SumOf(p.Bytes()).String() }

// Link chains a record to its predecessor: it sets Seq, Prev and Hash.
func (a AuditRecord) Link(prev AuditRecord) AuditRecord {
	a.Seq, a.Prev = prev.Seq+1, prev.Hash
	a.At = a.At.UTC().Truncate(time.Microsecond) // the precision that every backend can store
	a.Facts = storable(a.Facts)
	a.Hash = a.sum()
	return a
}

// storable returns the facts in the form in which every backend returns them: no empty map, and no bytes that JSON
// would replace.
func storable(facts map[string]string) map[string]string {
	valid := len(facts) > 0
	for name, value := range facts {
		valid = valid && utf8.ValidString(name) && utf8.ValidString(value)
	}
	if valid {
		return facts
	}
	var out map[string]string
	for name, value := range facts {
		if out == nil {
			out = make(map[string]string, len(facts))
		}
		out[strings.ToValidUTF8(name, "\uFFFD")] = strings.ToValidUTF8(value, "\uFFFD")
	}
	return out
}

// sum hashes every field but Hash.
func (a AuditRecord) sum() string { return SumOf(a.Bytes()).String() }

// VerifyChain checks that records form one complete chain, in order. Its error names the sequence number of the first
// faulty record.
func VerifyChain(records []AuditRecord) error {
	var prev AuditRecord
	for i, a := range records {
		switch {
		case a.Seq != uint64(i)+1:
			return fmt.Errorf("chain %s: record %d is missing or out of order (found %d)", a.Chain, i+1, a.Seq)
		case i > 0 && a.Chain != prev.Chain:
			return fmt.Errorf("chain %s: record %d belongs to chain %s", prev.Chain, a.Seq, a.Chain)
		case a.Prev != prev.Hash:
			return fmt.Errorf("chain %s: record %d does not follow record %d", a.Chain, a.Seq, prev.Seq)
		case a.sum() != a.Hash:
			return fmt.Errorf("chain %s: record %d was changed", a.Chain, a.Seq)
		}
		prev = a
	}
	return nil
}
