package bolt

import "fmt"

// bucket is the number of a bucket. The numbers are part of record headers, so they never change.
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
	_ // the bucket runs, which only layout version 1 has
	timers
	timerRef
	inbox
	inboxUnhandled
	inboxHandled
	outboxMessages
	outboxRef
	outboxSlackMessage
	renderings
	audit
	auditPayloads
	settings
	counters
	counterTime
	grants
	grantOpen
	absences
	conversationLast
	turnConversation
	requestConversation
	executionConversation
	auditJournal
	auditHeads
	requestPerson
	elicitations
	elicitationExecution
	files
	fileData
	setAside

	bucketEnd
)

// bucketNames holds the name of each bucket. A removed bucket has an empty name.
var bucketNames = [bucketEnd]string{
	conversations:      "conversations",
	conversationPlace:  "conversation_place",
	messages:           "messages",
	turns:              "turns",
	calls:              "calls",
	callTurn:           "call_turn",
	requests:           "requests",
	requestOpen:        "request_open",
	executions:         "executions",
	timers:             "timers",
	timerRef:           "timer_ref",
	inbox:              "inbox",
	inboxUnhandled:     "inbox_unhandled",
	inboxHandled:       "inbox_handled",
	outboxMessages:     "surfaces",
	outboxRef:          "surface_ref",
	outboxSlackMessage: "surface_message",
	renderings:         "renderings",
	audit:              "audit",
	auditPayloads:      "audit_payloads",
	settings:           "settings",
	counters:           "tallies",
	counterTime:        "tally_time",
	grants:             "grants",
	grantOpen:          "grant_open",
	absences:           "absences",

	conversationLast:      "conversation_last",
	turnConversation:      "turn_conversation",
	requestConversation:   "request_conversation",
	executionConversation: "execution_conversation",
	auditJournal:          "audit_journal",
	auditHeads:            "audit_heads",
	requestPerson:         "request_person",
	elicitations:          "elicitations",
	elicitationExecution:  "elicitation_execution",
	files:                 "files",
	fileData:              "file_data",
	setAside:              "set_aside",
}

// allBuckets iterates over the buckets of a store.
func allBuckets(yield func(bucket) bool) {
	for b := bucket(1); b < bucketEnd; b++ {
		if bucketNames[b] != "" && !yield(b) {
			return
		}
	}
}

func (b bucket) String() string {
	if b >= bucketEnd || bucketNames[b] == "" {
		return fmt.Sprintf("bucket(%d)", byte(b))
	}
	return bucketNames[b]
}
