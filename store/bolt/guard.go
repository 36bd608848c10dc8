package bolt

import (
	"fmt"
	"runtime"
	"runtime/debug"
	"strings"

	"countersign/store"
)

// Guard turns a fault while reading a damaged file into an error. The fault is a panic of bbolt, a read outside of the
// file, or a panic whose value is a *store.DamagedError or an errPageOrder. Guard re-raises any other panic.
func Guard(work func() error) (err error) {
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	defer func() {
		if p := recover(); p != nil {
			if row, ok := p.(*store.DamagedError); ok {
				err = row
				return
			}
			if !fromFile(p) {
				panic(p)
			}
			err = fmt.Errorf("%w (%v). Put a backup in its place", store.ErrDamaged, p)
		}
	}()
	return work()
}

// If a scan reads rows that are out of order, or too many damaged rows, it panics with an errPageOrder. The cause may
// be pages that form a cycle, in which the scan would never end.
type errPageOrder struct{ in bucket }

func (d errPageOrder) Error() string { return "the rows of " + d.in.String() + " are out of order" }

// fromFile reports whether the file's contents caused the current panic: the panic started in bbolt, or a read failed.
func fromFile(p any) bool {
	switch p := p.(type) {
	case errPageOrder:
		return true
	case interface {
		runtime.Error
		Addr() uintptr
	}:
		if p.Addr() > 0 {
			return true
		}
		// The runtime also reports address 0 for a read at a non-canonical address. So for address 0, the code below
		// looks at the stack instead.
	}
	calls := make([]uintptr, 64)
	frames := runtime.CallersFrames(calls[:runtime.Callers(1, calls)])
	began := false
	for f, more := frames.Next(); more; f, more = frames.Next() {
		ours := !strings.HasPrefix(f.Function, "runtime.")
		if began && ours {
			return strings.HasPrefix(f.Function, "go.etcd.io/bbolt")
		}
		began = began || f.Function == "runtime.gopanic"
	}
	return false
}
