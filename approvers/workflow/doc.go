// Package workflow is the one place where state changes. Each use case is a method of one of Workflow's groups
// (Workflow.Requests.Decide), and is one transaction of the store. State, audit records, timers and outbox messages
// change together or not at all.
//
// Package bot calls the use cases for clicks and messages from Slack, package agent for the model, package store/jobs
// for timers, and the command line for operators. The package knows neither Slack nor a model. The package guarantees
// the invariants of the design. Nothing is lost after Receive. Of two competing clicks, only one takes effect. A tool
// with effects runs at most once. Every tool call gets exactly one result. The audit is complete. The package never
// waits. Later work is stored as a timer, so a process may stop at any instruction.
//
// # Concepts
//
// A conversation is one Slack thread. A message in the conversation starts a turn, or waits until the current turn
// ends. A turn consists of steps. Each step calls the model. The model's tool calls are the step's calls. Each call has
// an execution, which holds the exact bytes that may run. A call that people must approve also has a request. The
// request goes through the stages of its plan. Everything that Slack must show is an outbox message. An outbox message
// is rendered from the state when it is posted.
//
// # Keys
//
//   - Conversations, turns, calls, executions, requests, grants and outbox messages have ids of their own
//     (workflow.go). Each record holds the id of its parent: a call has its turn's id, a request or an execution its
//     call's id.
//   - An audit chain has the id of its request or, if nobody is asked, of the execution or the call. A grant's chain is
//     "grant:" and its id. Records about the whole installation are in approvers.InstallationChain.
//   - A timer is named by its kind and its Ref, one of these ids. See store.TimerKind.
//   - An outbox message is addressed to a place: "conversation:", "channel:", "user:", "role:" or "group:" and a name
//     (store.ToConversation and the like).
//   - An inbox row has the id of Slack's delivery, so that a repeated delivery changes nothing.
//
// # The life of a call
//
//	Receive         the delivery is durable; Slack is acknowledged after that
//	ReceiveMessage  the message starts a turn, or waits
//	Begin           a model call is due; Propose stores the calls of its answer, or Answer ends the turn
//	Propose         plans each call: it may run (a timer), people must approve it (a request), or it is refused
//	Decide          one person's decision: a transition of approvers, and the consequences of its events
//	Claim           consumes the approval and stores the state executing, before the tool is called
//	Finish          records the result; when all calls of a step have one, the model is called again
//
// Remind, Escalate, ResolveAvailability and Expire act while nobody decides. Withdraw, Revoke, Overrule and StopBy end
// a call early. Recover, LeaveUnknown, Report and RetryUnknown handle runs whose process stopped.
//
// # Consequences of a transition
//
// A transition of a request returns the new value and its events (approvers.Event). apply writes the request and passes
// the events on, in this order: the call (apply_conversation.go), timers (apply_timers.go), the audit (apply_audit.go),
// counters (apply.go), messages and cards (apply_outbox.go), and finally the turn. The turn may continue with the
// call's result. To add a new consequence, add it to one of these functions. TestWhatFollowsFromAnEvent lists the
// consequences of each event.
//
// # Transactions
//
// A use case runs in update, with a tx: the store's transaction with one time and one policy. The store may run a use
// case more than once. So a use case does no I/O, and writes to no variable outside of the tx. The tx collects effects
// that must wait for the commit: timer kinds to wake, metrics to count, log lines, interruptions.
//
// The methods of a transaction are grouped by concern (workflow.go): t.outbox has the messages that Slack must show,
// and t.runs has the runs of tools. Each part is the transaction itself with the methods of its concern.
//
// Queries are in package view (Workflow.Views). Queries only read, and return plain values from one snapshot of the
// store. Some settings of the store are read by both workflow and view. Package settings defines them.
//
// # Files
//
// Begin with workflow.go: the groups, the transaction and its parts. The next files follow a call: receive_message,
// think, propose (automatic, budget, tool_preview, grant), decide (denials, withdraw, absence), apply, claim, stop,
// finish, unknown. The files callers and webhooks are about the calls of other agents. The files jobs, deadlines and
// reevaluate are about timers. The files outbox, delivery, repost, refused, bundle, card_queue, channel_state and home
// are about the messages that Slack shows. The file questions is about questions to people that are not approvals. The
// remaining files concern the whole installation: pause, interrupt, seal, retain, erase, restore, damage, moved.
package workflow
