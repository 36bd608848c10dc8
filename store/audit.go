package store

// Head is a signed statement about the contents of the journal at one moment.
type Head struct {
	Number uint64 // from 1, without gaps
	Size   uint64 // number of journal entries (leaves) that the head covers; greater than in the previous head
	Note   string // the signed text and its signatures
}
