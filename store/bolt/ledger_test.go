package bolt

import (
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"testing"
	"time"

	"go.etcd.io/bbolt"
)

// ledger is a hand-written program over bbolt. ledger does the minimum for a tool call that waits for a decision.
// ledger writes one row for each call, in one bucket, as JSON. ledger makes three commits. The first commit stores the
// waiting call. The second commit stores the decision and the start of the run. The third commit stores the result.
type ledger struct {
	*testing.B
	path   string
	shared *rawWriter // nil: each step opens the file for itself
}

// entry is a call's row.
type entry struct {
	ID        string          `json:"id"`
	State     string          `json:"state"`
	Tool      string          `json:"tool"`
	Args      json.RawMessage `json:"args"`
	CreatedAt time.Time       `json:"created_at"`
	DecidedBy string          `json:"decided_by,omitempty"`
	DecidedAt time.Time       `json:"decided_at,omitzero"`
	Result    string          `json:"result,omitempty"`
	EndedAt   time.Time       `json:"ended_at,omitzero"`
}

var ledgerBucket = []byte("calls")

func newLedger(b *testing.B, reopen bool) *ledger {
	l := &ledger{B: b, path: filepath.Join(b.TempDir(), "ledger.db")}
	w, err := l.open()
	if err != nil {
		b.Fatal(err)
	}
	err = w.update(func(tx *bbolt.Tx) error {
		_, err := tx.CreateBucket(ledgerBucket)
		return err
	})
	if err != nil {
		b.Fatal(err)
	}
	if reopen {
		if err := w.close(); err != nil {
			b.Fatal(err)
		}
	} else {
		l.shared = w
		b.Cleanup(func() { w.close() })
	}
	return l
}

func (l *ledger) open() (*rawWriter, error) {
	db, err := openRaw(l.path)
	if err != nil {
		return nil, err
	}
	return startRawWriter(db), nil
}

// part does one step of a job.
func (l *ledger) part(do func(*rawWriter) error) (err error) {
	w := l.shared
	if w == nil {
		if w, err = l.open(); err != nil {
			return err
		}
		defer func() { err = errors.Join(err, w.close()) }()
	}
	return do(w)
}

// job does a whole job.
func (l *ledger) job() error {
	id := rand.Text()
	return errors.Join(
		l.part(func(w *rawWriter) error { return l.park(w, id) }),
		l.part(func(w *rawWriter) error { return l.decideAndRun(w, id) }),
		l.part(func(w *rawWriter) error { return l.check(w, id) }),
	)
}

func (l *ledger) park(w *rawWriter, id string) error {
	return w.update(func(tx *bbolt.Tx) error {
		return putEntry(tx, entry{ID: id, State: "pending", Tool: jobTool.Name, Args: json.RawMessage(jobArgs), CreatedAt: time.Now()})
	})
}

func (l *ledger) decideAndRun(w *rawWriter, id string) error {
	err := w.update(func(tx *bbolt.Tx) error {
		e, err := getEntry(tx, id, "pending")
		if err != nil {
			return err
		}
		e.State, e.DecidedBy, e.DecidedAt = "executing", "U0002", time.Now()
		return putEntry(tx, e)
	})
	if err != nil {
		return err
	}
	result := jobResult
	return w.update(func(tx *bbolt.Tx) error {
		e, err := getEntry(tx, id, "executing")
		if err != nil {
			return err
		}
		e.State, e.Result, e.EndedAt = "executed", result, time.Now()
		return putEntry(tx, e)
	})
}

func (l *ledger) check(w *rawWriter, id string) error {
	return w.db.View(func(tx *bbolt.Tx) error {
		e, err := getEntry(tx, id, "executed")
		if err == nil && e.Result != jobResult {
			err = fmt.Errorf("%s: %s", id, e.Result)
		}
		return err
	})
}

// getEntry reads a row, which must be in the given state.
func getEntry(tx *bbolt.Tx, id, state string) (e entry, err error) {
	raw := tx.Bucket(ledgerBucket).Get([]byte(id))
	if raw == nil {
		return e, fmt.Errorf("%s is not there", id)
	}
	if err = json.Unmarshal(raw, &e); err == nil && e.State != state {
		err = fmt.Errorf("%s is %s, not %s", id, e.State, state)
	}
	return e, err
}

func putEntry(tx *bbolt.Tx, e entry) error {
	raw, err := json.Marshal(e)
	if err != nil {
		return err
	}
	return tx.Bucket(ledgerBucket).Put([]byte(e.ID), raw)
}
