package bolt

import (
	"errors"
	"flag"
	"fmt"
	"path/filepath"
	"runtime"
	"testing"
	"time"

	"countersign/store"
)

var waiting = flag.Int("waiting", 50_000, "how many waiting requests BenchmarkStart has; the design's figure is a million")

// BenchmarkStart opens a store with many waiting requests. BenchmarkStart reads the rows that a new process reads
// first: the due timers, and the next timer. The benchmark reports the time and the growth of the heap.
func BenchmarkStart(b *testing.B) {
	path := filepath.Join(b.TempDir(), "store.db")
	s, err := Open(path, Options{})
	if err != nil {
		b.Fatal(err)
	}
	s.db.NoSync = true // no syncs while the store is filled
	for n := 0; n < *waiting; {
		err := s.Update(b.Context(), func(tx store.Tx) error {
			for range min(1000, *waiting-n) {
				id := fmt.Sprintf("req_%x_%d", n*2654435761%(1<<32), n) // the ids are in no order
				if err := propose(tx, id, "s_"+id, benchTime.Add(time.Duration(n)*time.Millisecond)); err != nil {
					return err
				}
				n++
			}
			return nil
		})
		if err != nil {
			b.Fatal(err)
		}
	}
	if err := errors.Join(s.db.Sync(), s.Close()); err != nil {
		b.Fatal(err)
	}
	before := heap()
	var grown uint64
	for b.Loop() {
		s, err := Open(path, Options{})
		if err != nil {
			b.Fatal(err)
		}
		err = s.View(b.Context(), func(r store.Reader) error {
			for _, kind := range []store.TimerKind{
				store.TimerInbox, store.TimerThink, store.TimerRun, store.TimerExpire, store.TimerEscalate, store.TimerRemind, store.TimerAvailability,
				store.TimerModelQuestion, store.TimerLeave, store.TimerGrant, store.TimerShowFirst, store.TimerShow, store.TimerShowAnswer, store.TimerShowLast,
			} {
				due, err := r.TimersIn(store.AllShares, kind, benchTime, 1024)
				if err != nil || len(due) > 1 {
					return fmt.Errorf("%d timers %s are due: %w", len(due), kind, err)
				}
				if _, err := r.Timers(kind, 1); err != nil {
					return err
				}
			}
			return nil
		})
		if err != nil {
			b.Fatal(err)
		}
		b.StopTimer()
		grown = max(grown, heap()-min(before, heap()))
		if err := s.Close(); err != nil {
			b.Fatal(err)
		}
		b.StartTimer()
	}
	b.ReportMetric(float64(*waiting), "waiting")
	b.ReportMetric(float64(grown)/(1<<20), "heap-MiB")
}

func heap() uint64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}
