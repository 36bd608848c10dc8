package bolt

import (
	"fmt"
	"runtime"
	"runtime/debug"
	"strings"

	"countersign/store"
)

// Guard makes an error of what goes wrong while work reads from a damaged file: bbolt panics, or reads outside of the file. Any other panic goes on.
func Guard(work func() error) (err error) {
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	defer func() {
		if p := recover(); p != nil {
			if !fromFile(p) {
				panic(p)
			}
			err = fmt.Errorf("%w (%v). Put a backup in its place", store.ErrDamaged, p)
		}
	}()
	return work()
}

// disorder is a panic about rows that do not rise: pages of the file lead in a circle.
type disorder struct{ in bucket }

func (d disorder) Error() string { return "the rows of " + d.in.String() + " are out of order" }

// fromFile reports whether a panic that is under way comes from what the file holds: it began in bbolt, or reading failed.
func fromFile(p any) bool {
	switch p := p.(type) {
	case disorder:
		return true
	case interface {
		runtime.Error
		Addr() uintptr
	}:
		if p.Addr() > 0 {
			return true
		}
		// A place so far outside of the file that no address can name it is reported as none.
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
