package bolt

import (
	"runtime"
	"sync"

	"go.etcd.io/bbolt"
)

// rawPut is one row to be written. If the value of the row is empty, the row is deleted.
type rawPut struct {
	in         []byte
	key, value []byte
}

// putRows writes rows.
func putRows(puts []rawPut) func(*bbolt.Tx) error {
	return func(tx *bbolt.Tx) error {
		for _, p := range puts {
			bucket := tx.Bucket(p.in)
			var err error
			if len(p.value) == 0 {
				err = bucket.Delete(p.key)
			} else {
				err = bucket.Put(p.key, p.value)
			}
			if err != nil {
				return err
			}
		}
		return nil
	}
}

// rawWriter is a typical hand-written writer: a goroutine takes all waiting jobs, and commits them in one transaction.
type rawWriter struct {
	db   *bbolt.DB
	jobs chan rawJob
	wg   sync.WaitGroup
}

type rawJob struct {
	do   func(*bbolt.Tx) error
	done chan error
}

// openRaw opens a file as the store does.
func openRaw(path string) (*bbolt.DB, error) {
	db, err := bbolt.Open(path, 0o600, &bbolt.Options{FreelistType: bbolt.FreelistMapType, InitialMmapSize: initialMap})
	if err == nil {
		db.AllocSize = growBy
	}
	return db, err
}

func startRawWriter(db *bbolt.DB) *rawWriter {
	w := &rawWriter{db: db, jobs: make(chan rawJob)}
	w.wg.Go(func() {
		for j := range w.jobs {
			w.share(j)
		}
	})
	return w
}

// share commits a job together with all waiting jobs.
func (w *rawWriter) share(j rawJob) {
	batch := []rawJob{j}
	err := w.db.Update(func(tx *bbolt.Tx) error {
		for i := 0; i < len(batch); i++ {
			if err := batch[i].do(tx); err != nil {
				return err
			}
			if i+1 == len(batch) {
				batch = append(batch, w.waiting()...)
			}
		}
		return nil
	})
	for _, j := range batch {
		j.done <- err
	}
}

// waiting takes a job from the queue, if the queue has a job.
func (w *rawWriter) waiting() []rawJob {
	for range 2 {
		select {
		case j, ok := <-w.jobs:
			if ok {
				return []rawJob{j}
			}
			return nil
		default:
			runtime.Gosched()
		}
	}
	return nil
}

func (w *rawWriter) update(do func(*bbolt.Tx) error) error {
	j := rawJob{do, make(chan error, 1)}
	w.jobs <- j
	return <-j.done
}

// close ends the goroutine and closes the file.
func (w *rawWriter) close() error {
	close(w.jobs)
	w.wg.Wait()
	return w.db.Close()
}
