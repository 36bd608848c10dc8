// Package jobs runs timers when they fall due. A job is a timer row in the store: its kind, its subject (Ref), its due
// time, and its lane. To schedule work, a transaction writes such a row; the work starts after the commit. A process
// may stop at any instruction. The next process reads the rows and continues.
//
// A Runner reads the due timers of each kind and passes them to the kind's Worker:
//
//   - At most Worker.Concurrency handlers of a kind run simultaneously, one for each timer and one for each lane.
//   - If a Worker has flows, the flows of a lane take turns, so a flow with many timers does not delay the others.
//   - A handler's own transaction clears the timer or sets it again. A timer that the handler leaves unchanged is tried
//     again later, with back-off. If a lane's first timer fails, the lane's other timers wait for a while, to keep the
//     order. If the handler of a lane's first timer requests a delay, the other timers wait until that timer is
//     handled. A new process continues these waits.
//   - The Runner gives up on a handler that panics repeatedly, or meets a damaged record that can't be closed.
//   - While the disk is full, no handler starts, and a probe detects when there is space again.
//   - Setting the clock back does not delay timers that were due immediately, if their kind is in Options.Soon.
//
// The package knows timers and workers, but not their purpose. Functions in Options handle pauses, interruptions and
// abandoned timers.
package jobs
