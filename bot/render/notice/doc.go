// Package notice draws notices, which have no buttons to decide a request: notices to one person about a request,
// grants, pauses, absences, the weekly report, notices to operators, and the signed heads of the history. If the bot
// was away, package notice also draws the notice about this in a conversation.
//
// A notice that comes too late is marked as expired, so that the bot does not post it. The weekly report names no
// people, because everybody in its channel can read it.
package notice
