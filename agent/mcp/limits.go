package mcp

import "time"

// limits limit the resources that a server can use. docs/mcp.md lists the values. Tests use smaller values.
type limits struct {
	start     time.Duration // limit for a handshake, including the start of the program
	list      time.Duration // limit for reading the whole list of tools
	ready     time.Duration // how long a call waits for a server that is starting
	fresh     time.Duration // how old the list may be when a call is sent
	again     time.Duration // interval between reads of the list, if the server reports no change
	probe     time.Duration // limit for a ping after a call that took too long
	stream    time.Duration // how long a server may take to open the stream of unsolicited messages
	backoff   time.Duration // delay after the first failure; each further failure doubles the delay
	backoffTo time.Duration // maximum delay after a failure
	steady    time.Duration // if a connection lasted at least this long, the next delay is backoff again
	soft      time.Duration // how long a program may take to exit, first after its input is closed, and again after SIGTERM
	write     time.Duration // how long a program may take to read a message from its standard input

	message    int // bytes of one message
	tools      int // tools of one server
	pages      int // pages of one list
	listBytes  int // bytes of all pages of a list
	definition int // bytes of one tool's definition
	calls      int // concurrent calls of one server
	perSecond  int // messages that are read per second; further messages wait
}

var usual = limits{
	start: time.Minute, list: 20 * time.Second, ready: 10 * time.Second, fresh: 5 * time.Second, again: 30 * time.Second, probe: 10 * time.Second, stream: 5 * time.Second,
	backoff: time.Second, backoffTo: time.Minute, steady: time.Minute, soft: 2 * time.Second, write: 5 * time.Second,
	message: 16 << 20, tools: 500, pages: 100, listBytes: 4 << 20, definition: 64 << 10, calls: 64, perSecond: 10_000,
}
