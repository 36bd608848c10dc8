// Package desk is the one place where state changes: messages are heard, calls are proposed, decided, escalated, expired,
// claimed and finished, and what Slack must show is noted. Each of these is one transaction, in which state,
// audit record, timers and surfaces change together or not at all.
//
// It is called by clicks, timers, the model edge and the command line. It knows neither Slack nor a model.
//
// Everything that has to be done is a timer row; Work runs what falls due. Nothing waits in memory: a process
// may stop at any instruction, and the next one reads the rows and goes on.
package desk
