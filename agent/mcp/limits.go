package mcp

import "time"

// limits bound what a server may cost. Their values are in docs/mcp.md; tests use smaller ones.
type limits struct {
	start     time.Duration // from the start of a program, or the first request, to the end of the handshake
	list      time.Duration // for reading the list of tools, all pages of it
	ready     time.Duration // how long a call waits for a server that is just starting
	fresh     time.Duration // how old the list may be when a call is made
	again     time.Duration // how often the list is read although nothing says that it changed
	probe     time.Duration // how long a server may take to answer a ping after a call that took too long
	stream    time.Duration // how long an address may take to say whether it has a stream for messages unasked
	backoff   time.Duration // the pause after the first failure; each doubles
	backoffTo time.Duration // the longest pause
	steady    time.Duration // a connection that held so long makes the next pause the first again
	soft      time.Duration // how long a program may take to end by itself, and then again after SIGTERM
	write     time.Duration // how long a program may leave its standard input unread

	message    int // bytes of one message
	tools      int // of one server
	pages      int // of one list
	listBytes  int // of all pages
	definition int // bytes of one tool
	calls      int // under way at once on one server
	perSecond  int // messages that are read in a second; more wait
}

var usual = limits{
	start: time.Minute, list: 20 * time.Second, ready: 10 * time.Second, fresh: 5 * time.Second, again: 30 * time.Second, probe: 10 * time.Second, stream: 5 * time.Second,
	backoff: time.Second, backoffTo: time.Minute, steady: time.Minute, soft: 2 * time.Second, write: 5 * time.Second,
	message: 16 << 20, tools: 500, pages: 100, listBytes: 4 << 20, definition: 64 << 10, calls: 64, perSecond: 10_000,
}
