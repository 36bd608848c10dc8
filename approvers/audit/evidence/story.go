package evidence

import (
	"time"

	"countersign/approvers"
)

// Story is what the page tells of one chain: a request's, or an execution's where nobody was asked.
type Story struct {
	Chain   string
	Entries []Entry
	Names   map[approvers.PersonID]string // as they were called then; whoever is missing is shown by id
	Seal    Seal
	Differs string   // in which way the stored request, or its run, is not what the chain records; empty: it is
	Damaged []uint64 // the records that can't be read, and are not among Entries
}

// Entry is one record of the chain, with what it commits to.
type Entry struct {
	approvers.AuditRecord
	Payload []byte
	State   PayloadState
}

// PayloadState says what became of a record's payload.
type PayloadState int

// The states of a payload.
const (
	NoPayload PayloadState = iota // the record commits to none
	Whole                         // it is there, and matches the record's hash
	Erased                        // it was erased, as a record of the chain says
	Missing                       // it is not there, and nothing says why
	Changed                       // it does not match the record's hash
)

// Seal says under which signed head the chain's records are, and what was proved of that.
type Seal struct {
	Sealed int       // how many of the chain's records were proved to be under the head
	Head   uint64    // its number: the first that covers them, or the newest where none is covered yet; 0: the store has no heads
	Size   uint64    // how many records of the whole history it covers
	At     time.Time // when it was signed, to the second
	Root   string    // of the tree over those records
	Key    string    // the public key that signed it; empty: it was held against none
	Named  bool      // somebody named that key, and it is not from the bot's own file
	Note   string    // the signed note, as it is kept elsewhere too
	Faults []string  // what is wrong with the head or with the proofs, in sentences
}

// Page is what is written: stories one after the other.
type Page struct {
	Stories []Story
	MadeAt  time.Time
	MadeBy  string // the login of whoever had it made
}

// who is a person's name, with the id that Slack knows them by.
func (s Story) who(id approvers.PersonID) string {
	switch {
	case id == "":
		return "the bot"
	case id.Login() != "":
		return "the operator " + id.Login()
	case s.Names[id] != "":
		return s.Names[id] + " (" + id.User() + ")"
	}
	return id.User()
}

// user is the same for a bare Slack user id, as cards and addresses have it.
func (s Story) user(id string) string {
	for p, name := range s.Names {
		if p.User() == id && name != "" {
			return name
		}
	}
	return id
}

// first is the chain's first record of a kind.
func (s Story) first(kind approvers.AuditKind) (Entry, bool) {
	for _, e := range s.Entries {
		if e.Kind == kind {
			return e, true
		}
	}
	return Entry{}, false
}
