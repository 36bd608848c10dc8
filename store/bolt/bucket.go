package bolt

import "fmt"

// bucket numbers the buckets. The numbers are written into record headers: they never change.
type bucket byte

const (
	conversations bucket = iota + 1
	conversationPlace
	messages
	turns
	calls
	callTurn
	requests
	requestOpen
	executions
	runs
	timers
	timerRef
	inbox
	inboxUnhandled
	inboxHandled
	surfaces
	surfaceRef
	surfaceMessage
	renderings
	audit
	auditPayloads
	settings

	bucketEnd
)

var bucketNames = [bucketEnd]string{
	conversations:     "conversations",
	conversationPlace: "conversation_place",
	messages:          "messages",
	turns:             "turns",
	calls:             "calls",
	callTurn:          "call_turn",
	requests:          "requests",
	requestOpen:       "request_open",
	executions:        "executions",
	runs:              "runs",
	timers:            "timers",
	timerRef:          "timer_ref",
	inbox:             "inbox",
	inboxUnhandled:    "inbox_unhandled",
	inboxHandled:      "inbox_handled",
	surfaces:          "surfaces",
	surfaceRef:        "surface_ref",
	surfaceMessage:    "surface_message",
	renderings:        "renderings",
	audit:             "audit",
	auditPayloads:     "audit_payloads",
	settings:          "settings",
}

func (b bucket) String() string {
	if b == 0 || b >= bucketEnd {
		return fmt.Sprintf("bucket(%d)", byte(b))
	}
	return bucketNames[b]
}
