package workflow

// parts are the groups of what a transaction can do, one for each concern. Each is the transaction itself with the
// methods of its concern: t.outbox.changed(s), t.timers.updateTimers(r, events).
type parts struct {
	outbox    outboxTx    // the messages that Slack must show
	cards     cardsTx     // the cards of requests: where they are shown, bundles, and the queues of people
	reposts   repostsTx   // messages that Slack has lost
	channels  channelsTx  // channels that the bot lost, and what was open there
	homes     homesTx     // Home tabs
	requests  requestsTx  // moves of a request
	timers    timersTx    // what follows from a move for timers
	records   recordsTx   // what follows for the history
	notices   noticesTx   // what follows for cards and notices
	turns     turnsTx     // conversations, messages and turns
	proposals proposalsTx // calls that the model asks for: planned, asked about, or run
	runs      runsTx      // runs and their results
	questions questionsTx // what the model and running tools ask people
	previews  previewsTx  // previews by tools
	grants    grantsTx    // grants, and the trust that leads to an offer of one
	people    peopleTx    // absences
	pauses    pausesTx    // pauses
	damage    damageTx    // closing what a damaged record belongs to
	restore   restoreTx   // closing what a restored store must not act on
	seals     sealsTx     // signed heads
}

// The concerns of a transaction.
type (
	outboxTx    struct{ *tx }
	cardsTx     struct{ *tx }
	repostsTx   struct{ *tx }
	channelsTx  struct{ *tx }
	homesTx     struct{ *tx }
	requestsTx  struct{ *tx }
	timersTx    struct{ *tx }
	recordsTx   struct{ *tx }
	noticesTx   struct{ *tx }
	turnsTx     struct{ *tx }
	proposalsTx struct{ *tx }
	runsTx      struct{ *tx }
	questionsTx struct{ *tx }
	previewsTx  struct{ *tx }
	grantsTx    struct{ *tx }
	peopleTx    struct{ *tx }
	pausesTx    struct{ *tx }
	damageTx    struct{ *tx }
	restoreTx   struct{ *tx }
	sealsTx     struct{ *tx }
)

// newParts returns the parts of a transaction.
func newParts(t *tx) parts {
	return parts{
		outbox:    outboxTx{t},
		cards:     cardsTx{t},
		reposts:   repostsTx{t},
		channels:  channelsTx{t},
		homes:     homesTx{t},
		requests:  requestsTx{t},
		timers:    timersTx{t},
		records:   recordsTx{t},
		notices:   noticesTx{t},
		turns:     turnsTx{t},
		proposals: proposalsTx{t},
		runs:      runsTx{t},
		questions: questionsTx{t},
		previews:  previewsTx{t},
		grants:    grantsTx{t},
		people:    peopleTx{t},
		pauses:    pausesTx{t},
		damage:    damageTx{t},
		restore:   restoreTx{t},
		seals:     sealsTx{t},
	}
}
