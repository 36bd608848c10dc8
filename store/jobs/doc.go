// Package jobs runs timers when they fall due. A job is a timer row in the store. A timer has a kind, a subject (Ref),
// a due time and a lane. Timers of one kind with the same lane run one at a time, in the order of their due times. To
// schedule work, a transaction sets a timer. The work starts after the commit. If a process stops, the next process
// reads the timers and continues the work.
//
// A Runner reads the due timers of each kind and passes them to the kind's Worker:
//
//   - At most Worker.Concurrency handlers of a kind run at the same time. At most one handler runs for each timer, and
//     at most one for each lane.
//   - A Worker may divide the timers of a lane into flows (see Worker.Flow). The flows of a lane take turns. So a flow
//     with many timers does not delay the other flows.
//   - A handler's own transaction clears its timer, or sets the timer to a later time. If the handler leaves the
//     timer unchanged, the Runner retries the timer with back-off. If a lane's first timer fails, the lane's other
//     timers wait for its retries, to keep the order, but only for about ten seconds. The handler of a lane's first
//     timer may also request a delay. Unless Worker.Yields is set, the lane's other timers then wait until the first
//     timer is handled. A new process continues these waits.
//   - The Runner gives up a timer if its handler panics repeatedly, or repeatedly fails because of a damaged record.
//   - While the disk is full, no handler starts. A regular test write detects when the disk has free space.
//   - If the clock is set back, or another replica's clock is ahead, timers of the kinds in Options.Soon still run soon.
//
// The package does not depend on the purpose of timers and workers. Functions in Options handle pauses, interruptions
// and abandoned timers.
package jobs
