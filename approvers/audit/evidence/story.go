package evidence

import (
	"time"

	"countersign/approvers"
)

// Story is the history of one request, or of one execution if nobody was asked.
type Story struct {
	Chain   string
	Asked   bool // for the chain of an execution: the call was about to run without approval, but a request was opened instead
	Entries []Entry
	Names   map[approvers.PersonID]string // people's names at the time when they acted; a person without a name is shown by id
	Words   string                        // the message that led to the request, as the store has it
	Seal    Seal
	Differs string   // how the stored request or its run differs from the chain; empty: there is no difference
	Damaged []uint64 // the numbers of the records that can't be read and are missing in Entries
}

// Entry is one record of the chain, with its payload.
type Entry struct {
	approvers.AuditRecord
	Payload []byte
	State   PayloadState
}

// PayloadState is the result of comparing a payload with its record.
type PayloadState int

// The states of a payload.
const (
	NoPayload PayloadState = iota // the record has no payload
	Whole                         // the payload matches the record's hash
	Erased                        // a record of the chain says that the payload was erased
	Missing                       // the payload is missing, and no record says why
	Changed                       // the payload does not match the record's hash
)

// Seal is the signed head that covers the chain's records, and the result of its verification.
type Seal struct {
	Sealed int       // how many of the chain's records the head covers, as proofs show
	Head   uint64    // number of the first head that covers the records, or of the newest head if no head covers them yet; 0: the store has no heads
	Size   uint64    // how many records of the whole history the head covers
	At     time.Time // when the head was signed, to the second
	Root   string    // root of the tree over those records
	Key    string    // the public key that signed the head; empty: the signature was not verified with any key
	Named  bool      // the operator named the key; if false, the key comes from the bot's key file
	Note   string    // the signed note; a copy of the head that is kept elsewhere has the same note
	Faults []string  // faults of the head or of the proofs, in sentences
}

// Page is the input of Write.
type Page struct {
	Stories []Story
	MadeAt  time.Time
	MadeBy  string // login of the person who made the page
}

// The method returns a person's name and Slack id, or a client's title and name.
func (s Story) who(id approvers.PersonID) string {
	switch {
	case id == "":
		return "the bot"
	case id.Login() != "":
		return "the operator " + id.Login()
	case id.Caller() != "" && s.Names[id] != "":
		return s.Names[id] + " (client " + id.Caller() + ")"
	case id.Caller() != "":
		return "the client " + id.Caller()
	case s.Names[id] != "":
		return s.Names[id] + " (" + id.User() + ")"
	}
	return id.User()
}

// user returns the name of the person with the given Slack user id. If the name is unknown, user returns the id.
func (s Story) user(id string) string {
	for p, name := range s.Names {
		if p.User() == id && name != "" {
			return name
		}
	}
	return id
}

// The method returns the chain's first record of a kind.
func (s Story) first(kind approvers.AuditKind) (Entry, bool) {
	for _, e := range s.Entries {
		if e.Kind == kind {
			return e, true
		}
	}
	return Entry{}, false
}
