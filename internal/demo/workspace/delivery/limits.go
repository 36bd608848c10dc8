package delivery

// Slack's limits on deliveries. For each limit, a test must try the largest legal and the smallest illegal case.
// Another test checks that each limit was tried.
const (
	MaxSockets  = 10        // sockets that an app may have open
	maxAckBytes = 20 * 1024 // a Socket Mode acknowledgement of this size or more is dropped
)
