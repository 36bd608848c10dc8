package campaign

import (
	"regexp"
	"runtime"
)

var deskMove = regexp.MustCompile(`^countersign/approvers/desk\.\(\*Desk\)\.([A-Z]\w*)$`)

// Move is the desk's move that called whoever asks, such as "Claim"; empty if none did. A store that stands before the real one names its transactions by it.
func Move() string {
	var pcs [64]uintptr
	frames := runtime.CallersFrames(pcs[:runtime.Callers(2, pcs[:])])
	for {
		frame, more := frames.Next()
		if m := deskMove.FindStringSubmatch(frame.Function); m != nil {
			return m[1]
		}
		if !more {
			return ""
		}
	}
}

// The two points of a move's transaction at which a process can stop.
const (
	BeforeCommit = ", before its commit"
	BehindCommit = ", behind its commit"
)
