package delivery

// Slack's limits of deliveries. A test fails if no other test tries them.
const (
	MaxSockets  = 10        // that an app may have open
	maxAckBytes = 20 * 1024 // of a Socket Mode acknowledgement; larger ones are dropped
)
