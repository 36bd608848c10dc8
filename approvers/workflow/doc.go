// Package workflow makes all changes of the stored state. Each use case is a method of a field of Workflow, for example
// Workflow.Requests.Decide. Most use cases run one transaction of the store. State, audit records, timers and outbox
// messages change together in this transaction. If the transaction fails, none of them changes.
//
// The use cases are called by package bot (for clicks and messages from Slack), package agent (for the model), package
// store/jobs (for timers), and the command line (for operators). Package workflow depends neither on Slack nor on a
// model. It guarantees these invariants:
//
//   - A delivery from Slack is not lost after Intake.Receive has stored it.
//   - If two people click at the same moment, the second click is handled after the first, and sees its effect.
//   - The bot never repeats a run of an unprotected tool (approvers.Unprotected) by itself, because the tool might act
//     twice.
//   - Every tool call gets exactly one result.
//   - The audit has a record of every proposal, decision, run and result.
//   - A method does not wait for later work, such as a run or a deadline, but stores a timer for the work. So a process
//     may stop at any instruction, and the next process handles the timer.
//
// # Concepts
//
// A conversation is one Slack thread, or one request of a caller. A message in the conversation starts a turn, or waits
// until the current turn ends. A turn consists of steps. A step is one call to the model, together with the tool calls
// that the model requests. Each tool call that is not refused at once has an execution. The execution holds the exact
// arguments with which the tool may run. A tool call that people must approve also has a request. The request's plan
// lists the approval stages, and the request passes the stages in order. For each message that Slack must show, the
// store has an outbox message. The bot renders an outbox message from the state when it posts the message.
//
// # Keys
//
//   - Conversations, turns, calls, executions, requests, grants and outbox messages have ids of their own. See newID.
//     Each record holds the id of its parent. For example, a call has the id of its turn, and a request has the id of
//     its call.
//   - A call's audit chain has the id of the call's request, of its execution if there is no request, or of the call
//     itself if there is neither. A grant has the chain approvers.GrantChain, and a person's absences have the chain
//     approvers.AbsenceChain. Records about the whole installation are in approvers.InstallationChain.
//   - A timer is identified by its kind and its Ref. The Ref is usually the id of the record that the timer is about.
//     See store.TimerKind.
//   - A timer may have a lane and an affinity. Timers with the same kind and the same lane are handled one at a time,
//     in order. Outbox messages to one address have the same lane. The messages of a lane that one person or client
//     caused are a flow (view.Flow), and the flows of a lane take turns. The pending work is divided into 64 shares.
//     All timers with the same affinity are in the same share. A replica is one of several processes that use the same
//     store. A replica has a claim to each share that it works on.
//   - The address of an outbox message is "conversation:", "channel:", "user:", "role:" or "group:", followed by an id
//     or a name. See store.ToConversation.
//   - An inbox row has the id of Slack's delivery. If Slack repeats a delivery, the workflow finds the row and changes
//     nothing.
//
// # The life of a call
//
//	Receive         stores a delivery; after that, the bot acknowledges the delivery to Slack
//	ReceiveMessage  the message starts a turn, or waits
//	Begin           reads the input of a model call; then Propose stores its tool calls, or Answer ends the turn
//	Propose         plans each call: it may run (a timer), people must approve it (a request), or it is refused
//	Decide          one person's decision: a transition of the request, and the consequences of its events
//	Claim           consumes the approval and stores the state executing, before the tool is called
//	Finish          records the result; when all calls of a step have a result, the model is called again
//
// Remind, Escalate, ResolveAvailability and Expire handle requests that nobody decides. Withdraw, Revoke, Overrule and
// StopBy end a call early. Recover, LeaveUnknown, Report and RetryUnknown handle runs whose process stopped.
//
// # Consequences of a transition
//
// A transition of a request returns the new value and its events (approvers.Event). apply writes the request and passes
// the events to functions in this order: the call (apply_conversation.go), timers (apply_timers.go), the audit
// (apply_audit.go), counters (apply.go), messages (apply_outbox.go), the caller (callers.go), the operators
// (operators.go), cards (apply_outbox.go), and finally the turn. To add a new consequence, extend one of these
// functions. TestWhatFollowsFromAnEvent lists the consequences of each event.
//
// # Transactions
//
// A use case passes a function to update. The function receives a tx: the store's transaction, with one time and one
// policy. The store may run the function more than once before the commit. So the function must not do I/O. If the
// function sets a variable that was declared outside of the function, it must first reset the variable, because an
// earlier run may have changed it. The tx collects the effects that may happen only after the commit: workers to wake,
// metrics to count, log lines to write, handlers to interrupt.
//
// The methods of a transaction are grouped by concern (workflow.go): t.outbox has the messages that Slack must show,
// and t.runs has the runs of tools. Each group is a type that embeds the transaction.
//
// A package outside of the workflow changes state only through Workflow.Update, and never changes how a call proceeds.
// Package retention is such a package: it erases old data.
//
// Queries are in package view (Workflow.Views). Queries return plain values from one snapshot of the store. Package
// settings defines the settings that both workflow and view read.
//
// # Files
//
// Begin with workflow.go: the groups, the transaction and its parts. The next files follow a call: receive_message
// (message_edit), think, propose (automatic, budget, tool_preview, grant), decide (denials, withdraw, absence), apply,
// claim, stop, finish, unknown. The files callers, callers_held, callers_named and webhooks handle the calls of other
// agents. The files jobs and deadlines handle timers. The files outbox, delivery, repost, refused, bundle, card_queue,
// channel_state and home are about the messages that Slack shows. The file questions handles the questions of the model
// and of running tools to people, and feedback handles people's ratings of answers. The remaining files concern the
// whole installation: policy, pause, interrupt, gaps, operators, seal, report, restore, damage, moved.
package workflow
