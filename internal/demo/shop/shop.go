package shop

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"os"
	"sync"
	"time"
)

// Shop is safe for concurrent use. On Linux and macOS, several processes can use the same file at the same time.
type Shop struct {
	path string // empty: in memory only
	now  func() time.Time

	mu    sync.Mutex
	saved []byte // the current state as JSON; every change works on a copy
	state State
	file  os.FileInfo // describes the file that was last read or written; nil: not known
}

// New returns a new shop in memory.
func New(now func() time.Time) *Shop {
	s := &Shop{now: now}
	s.adopt(seed(now().UTC()))
	return s
}

// Open returns the shop in the file at path. If there is no file, Open creates it. With an empty path, Open returns the
// same as New.
func Open(path string, now func() time.Time) (*Shop, error) {
	if path == "" {
		return New(now), nil
	}
	s := &Shop{path: path, now: now}
	state, found, err := load(path)
	if err != nil {
		return nil, err
	}
	if found {
		s.adopt(state)
		return s, nil
	}
	unlock, err := lock(path)
	if err == nil {
		defer unlock()
		if state, found, err = load(path); err == nil && found { // another process has created the file first
			s.adopt(state)
			return s, nil
		}
	}
	s.adopt(seed(now().UTC()))
	if err == nil {
		err = save(path, s.saved)
	}
	if err != nil {
		return nil, fmt.Errorf("stock the shop in %s: %w", path, err)
	}
	return s, nil
}

// State returns a copy of the state.
func (s *Shop) State() State {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.refresh()
	return decode(s.saved)
}

// Ledger returns every effect so far, oldest first.
func (s *Shop) Ledger() []Entry { return s.State().Ledger }

func (s *Shop) adopt(state State) {
	s.saved = encode(state)
	s.state = decode(s.saved)
}

// change is the copy of the state that one call works on.
type change struct {
	*State
	at      time.Time
	summary string // summary of the effect, for the ledger
}

// read calls the function "look" with the current state. look must not keep a reference to the state.
func read[R any](ctx context.Context, s *Shop, look func(*State) (R, error)) (R, error) {
	var none R
	if err := ctx.Err(); err != nil {
		return none, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.refresh()
	return look(&s.state)
}

// once calls the function "act" under an idempotency key. If an earlier call with the same key, tool and arguments
// succeeded, once returns the stored answer of that call, and does not call act.
func once[A, R any](ctx context.Context, s *Shop, key, tool string, args A, act func(*change) (R, error)) (R, error) {
	var result R
	if err := ctx.Err(); err != nil {
		return result, err
	}
	if key == "" {
		return result, problem(ErrNoKey, "%s changes something and needs an idempotency key.", tool)
	}
	digest := digestOf(tool, args)
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.path != "" {
		unlock, err := lock(s.path)
		if err != nil {
			return result, fmt.Errorf("%w: %w", ErrNotSaved, err)
		}
		defer unlock()
		s.refresh()
	}

	next := decode(s.saved)
	if run, ok := next.Runs[key]; ok {
		if run.Digest != digest {
			return result, problem(ErrKeyReused, "The idempotency key %s was already used for %s with other arguments; nothing was done.", key, run.Tool)
		}
		if err := json.Unmarshal(run.Result, &result); err != nil {
			return result, fmt.Errorf("repeat the answer of %s: %w", tool, err)
		}
		next.Ledger[run.Entry-1].Repeats++
		return result, s.commit(next)
	}
	c := &change{State: &next, at: s.now().UTC()}
	result, err := act(c)
	if err != nil {
		var none R
		return none, err
	}
	answer, err := json.Marshal(result)
	if err != nil {
		return result, fmt.Errorf("write the answer of %s: %w", tool, err)
	}
	number := len(next.Ledger) + 1
	next.Ledger = append(next.Ledger, Entry{Number: number, At: c.at, Tool: tool, Key: key, Summary: c.summary})
	next.Runs[key] = Run{Tool: tool, Digest: digest, Entry: number, Result: answer}
	if err := s.commit(next); err != nil {
		var none R
		return none, err
	}
	return result, nil
}

// The method "answered" reports whether a key was already used.
func (s *Shop) answered(key string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.refresh()
	_, ok := s.state.Runs[key]
	return ok
}

// commit first saves the given state, and then makes it the current state.
func (s *Shop) commit(next State) error {
	next.Revision++
	data := encode(next)
	if s.path != "" {
		if err := save(s.path, data); err != nil {
			return fmt.Errorf("%w: %w", ErrNotSaved, err)
		}
	}
	s.saved, s.state = data, decode(data)
	s.file, _ = os.Stat(s.path)
	return nil
}

// refresh reads changes that another process made to the file. If the file can't be read, the state stays as it is.
func (s *Shop) refresh() {
	if s.path == "" {
		return
	}
	info, err := os.Stat(s.path)
	if err != nil || s.file != nil && os.SameFile(info, s.file) && info.ModTime().Equal(s.file.ModTime()) && info.Size() == s.file.Size() {
		return
	}
	if state, found, err := load(s.path); err == nil && found {
		s.adopt(state)
		s.file = info
	}
}

func digestOf(tool string, args any) string {
	data, err := json.Marshal(args)
	if err != nil {
		panic("shop: arguments that can't be written: " + err.Error()) // argument structs hold plain values only
	}
	sum := sha256.Sum256(append([]byte(tool+"\x00"), data...))
	return hex.EncodeToString(sum[:])
}
