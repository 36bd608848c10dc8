package testkit

import (
	"regexp"
	"runtime"
)

var transition = regexp.MustCompile(`^countersign/approvers/workflow\.\(\*[A-Z]\w*\)\.([A-Z]\w*)$`)

// CallingTransition returns the name of the workflow's transition on the call stack, such as "Claim". If there is no
// transition on the call stack, the name is empty. Test stores use the name for their transactions.
func CallingTransition() string {
	var pcs [64]uintptr
	frames := runtime.CallersFrames(pcs[:runtime.Callers(2, pcs[:])])
	for {
		frame, more := frames.Next()
		if m := transition.FindStringSubmatch(frame.Function); m != nil {
			return m[1]
		}
		if !more {
			return ""
		}
	}
}

// The two points in a transition's transaction at which a process can stop.
const (
	BeforeCommit = ", before its commit"
	BehindCommit = ", behind its commit"
)
