package home

// These values limit the entries of a list. A limit is in characters unless its comment says otherwise.
const (
	MaxGrantsListed  = 10
	MaxWaitingListed = 10
)
