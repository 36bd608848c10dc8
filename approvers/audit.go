package approvers

import (
	"fmt"
	"strings"
	"time"
	"unicode/utf8"
)

// AuditKind says what became true.
type AuditKind string

// The kinds of audit record. docs/audit.md says who writes which, and when.
const (
	AuditProposed  AuditKind = "proposed"
	AuditShown     AuditKind = "shown"
	AuditDenied    AuditKind = "denied"  // somebody tried without authority, or too late
	AuditDecided   AuditKind = "decided" // approve, reject or modify
	AuditAdvanced  AuditKind = "advanced"
	AuditApproved  AuditKind = "approved"  // the last stage has its quorum
	AuditClosed    AuditKind = "closed"    // rejected, expired, withdrawn, revoked, voided or refused
	AuditReopened  AuditKind = "reopened"  // the policy became stricter after the approval
	AuditPreviewed AuditKind = "previewed" // a tool was asked what a call would do, before anybody decided, or answered
	AuditReplanned AuditKind = "replanned" // the policy became stricter while it waited
	AuditEscalated AuditKind = "escalated"
	AuditExecuting AuditKind = "executing"
	AuditExecuted  AuditKind = "executed"
	AuditUnknown   AuditKind = "unknown"
	AuditReported  AuditKind = "reported"
	AuditReturned  AuditKind = "returned" // the result was handed to the model
	AuditReminded  AuditKind = "reminded" // those who had not decided were told again
	AuditInvited   AuditKind = "invited"  // a person was added to the stage: handed on to, or standing in
	AuditAnswered  AuditKind = "answered" // a person answered a question of the model's
	AuditElicited  AuditKind = "elicited" // a tool asked the person who asked, in the middle of its run
	AuditReplied   AuditKind = "replied"  // what became of that: accepted, declined, cancelled or expired
	AuditAttached  AuditKind = "attached" // a run brought a file back
	AuditRemarked  AuditKind = "remarked" // a question, an answer or a comment
	AuditAway      AuditKind = "away"     // a person set when they are away, in a chain of their own
	AuditGranted   AuditKind = "granted"  // a grant was offered, given, used, or ended, in its own chain
	AuditReworded  AuditKind = "reworded" // the words that led to it were edited or deleted after the agent had read them
	AuditPaused    AuditKind = "paused"   // somebody stopped every run and model call, in the installation's chain
	AuditResumed   AuditKind = "resumed"  // and let them go on
	AuditErased    AuditKind = "erased"   // payloads were erased; the records and their hashes stay
	AuditPruned    AuditKind = "pruned"   // a whole chain was removed by its age, in the installation's chain
	AuditRestored  AuditKind = "restored" // the store was put back from a backup, in the installation's chain
)

// AuditKinds lists them all.
var AuditKinds = []AuditKind{
	AuditProposed, AuditPreviewed, AuditShown, AuditDenied, AuditDecided, AuditAdvanced, AuditApproved,
	AuditClosed, AuditReopened, AuditReplanned, AuditEscalated, AuditExecuting, AuditExecuted,
	AuditUnknown, AuditReported, AuditReturned, AuditReminded, AuditInvited, AuditAnswered,
	AuditRemarked, AuditAway, AuditGranted, AuditPaused, AuditResumed, AuditErased,
	AuditPruned, AuditRestored, AuditReworded, AuditElicited, AuditReplied, AuditAttached,
}

// InstallationChain is the chain of what concerns no single request: pauses, retention, restores.
const InstallationChain = "installation"

// AuditRecord is one line of the hash-chained history. Chain is a request's id, or an execution's
// where nobody was asked, so that writers of different requests don't wait for each other.
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

// AuditPayload is what a record's PayloadHash commits to: arguments, reasons, renderings. It lies beside the record, so
// that it can be erased without breaking the chain. The salt keeps a hash from being guessed back.
type AuditPayload struct {
	Chain string `json:"chain"`
	Seq   uint64 `json:"seq"`
	Salt  []byte `json:"salt"` // 16 random bytes
	Body  []byte `json:"body"`
}

// Hash is the salted hash of the payload.
func (p AuditPayload) Hash() string { return SumOf(p.Bytes()).String() }

// Link chains a record to its predecessor: it sets Seq, Prev and Hash.
func (a AuditRecord) Link(prev AuditRecord) AuditRecord {
	a.Seq, a.Prev = prev.Seq+1, prev.Hash
	a.At = a.At.UTC().Truncate(time.Microsecond) // what every backend can store without loss
	a.Facts = storable(a.Facts)
	a.Hash = a.sum()
	return a
}

// storable is the facts as every backend gives them back: no empty map, and no bytes that JSON would replace.
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

// VerifyChain checks that records are one whole chain, in order. It returns the sequence number of the first faulty one in its error.
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
