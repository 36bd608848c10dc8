package delivery

// Slack's limits on deliveries. Each must be tried by some test; another test checks that.
const (
	MaxSockets  = 10        // sockets that an app may have open
	maxAckBytes = 20 * 1024 // size of a Socket Mode acknowledgement; larger ones are dropped
)
