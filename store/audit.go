package store

// Head is a signed statement of what the journal was at one time.
type Head struct {
	Number uint64 // from 1, without gaps
	Size   uint64 // how many leaves it covers, more than the head before
	Note   string // what was signed, and the signatures
}
