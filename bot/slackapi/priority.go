package slackapi

import "context"

// Priority determines which calls go first if Slack's limits do not allow all calls now.
type Priority int

// These are the priorities, from the most urgent to the least urgent. The default is PriorityNormal.
const (
	PriorityUrgent    Priority = iota // a person waits for the call: forms, and answers to a click
	PriorityFirst                     // urgent work, such as the cards of critical calls
	PriorityNormal                    // everything else that people act on
	PriorityReply                     // answers for the requester
	PriorityLast                      // messages that only inform
	PriorityTransient                 // a state that will soon be replaced; it may be skipped
	priorities
)

// CallPriority describes the purpose of a call to the rate limiter.
type CallPriority struct {
	Priority     Priority
	Retry        bool   // the call was put off before, and its time has come
	WillChange   bool   // the message will need an update; the update is reserved now, or the call is put off
	UsesReserved bool   // the call is the update that was reserved when the message was posted
	Flow         string // in one channel, a post waits only behind posts of the same flow
	probe        bool   // the call only tests whether Slack answers
}

type callPriorityKey struct{}

// WithCallPriority sets the purpose of the calls that are made under a context.
func WithCallPriority(ctx context.Context, e CallPriority) context.Context {
	return context.WithValue(ctx, callPriorityKey{}, e)
}

// priorityOf returns the purpose of the calls under a context.
func priorityOf(ctx context.Context) CallPriority {
	if e, ok := ctx.Value(callPriorityKey{}).(CallPriority); ok {
		return e
	}
	return CallPriority{Priority: PriorityNormal}
}
