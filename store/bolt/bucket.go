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
	_ // was runs, which are tallies since version 2
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
	tallies
	tallyTime
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

	bucketEnd
)

// bucketNames has no name for a bucket that is gone.
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
	tallies:           "tallies",
	tallyTime:         "tally_time",
	grants:            "grants",
	grantOpen:         "grant_open",
	absences:          "absences",

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
}

// allBuckets goes through the buckets that a store has.
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
