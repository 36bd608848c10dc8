package mcp

import "time"

// limits limit the resources that a server can use. docs/mcp.md lists the values. Tests use smaller values.
type limits struct {
	start     time.Duration // from the start of a program, or the first request, to the end of the handshake
	list      time.Duration // for reading the whole list of tools
	ready     time.Duration // how long a call waits for a server that is starting
	fresh     time.Duration // maximum age of the list for a call
	again     time.Duration // interval between reads of the list if the server reports no change
	probe     time.Duration // time for a ping after a call that took too long
	stream    time.Duration // time in which an address must say whether it has a stream for unsolicited messages
	backoff   time.Duration // the delay after the first failure; it doubles each time
	backoffTo time.Duration // the longest delay
	steady    time.Duration // a connection that lasts this long resets the delay
	soft      time.Duration // time for a program to end by itself, and again after SIGTERM
	write     time.Duration // how long a program may leave its standard input unread

	message    int // bytes of one message
	tools      int // tools of one server
	pages      int // pages of one list
	listBytes  int // bytes of all pages of a list
	definition int // bytes of one tool's definition
	calls      int // simultaneous calls on one server
	perSecond  int // messages read per second; more have to wait
}

var usual = limits{
	start: time.Minute, list: 20 * time.Second, ready: 10 * time.Second, fresh: 5 * time.Second, again: 30 * time.Second, probe: 10 * time.Second, stream: 5 * time.Second,
	backoff: time.Second, backoffTo: time.Minute, steady: time.Minute, soft: 2 * time.Second, write: 5 * time.Second,
	message: 16 << 20, tools: 500, pages: 100, listBytes: 4 << 20, definition: 64 << 10, calls: 64, perSecond: 10_000,
}
