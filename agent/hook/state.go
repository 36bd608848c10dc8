package hook

import (
	"bytes"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"countersign/agent/client"
)

// memory keeps the requests of a session from one event to the next.
type memory interface {
	// begin returns the record of a call. The result resumed is true if the call continues a request of the session.
	// The function fresh makes the key of a new request.
	begin(ctx context.Context, h *hook, fresh func() string) (r record, resumed bool, err error)
	// mark returns a text that the gateway keeps with a new request.
	mark(h *hook) string
	asked(r record) error // stores r.Request, which was just set
	leave(r record)       // the hook ends without a decision; a repetition of the call continues the request
	// claiming is called before the claim of an approval. The parameter changed has the edited arguments, or is nil.
	claiming(ctx context.Context, h *hook, r *record, changed json.RawMessage) error
	claimed(r record) error
	drop(r record) // no later event needs the record
	// told is called when the agent learns that the record's request is lost. A repetition of the call then makes a new
	// request.
	told(ctx context.Context, h *hook, r record)
	// ran returns the record of the call that has ended.
	ran(ctx context.Context, h *hook) (r record, ok bool, err error)
	unreported(r record) error                              // the report of an outcome failed
	earlier() []record                                      // the records whose report failed, of all sessions
	waiting(ctx context.Context, h *hook) ([]record, error) // the records without a decision
}

// A record stores a request for the later events of a session. On the agent's machine, a record is a file, and the
// extension of the file's name is the state of the record. If several processes rename the file, only one of them
// succeeds. So only one process continues a record in the state left.
type record struct {
	Key     string   `json:"key"`     // the idempotency key
	Request string   `json:"request"` // id of the request; empty: the id is not known yet
	Call    string   `json:"call"`    // fingerprint of the call with its folder
	Ran     []string `json:"ran"`     // fingerprints of the original call and the edited call, both without the folder
	ID      string   `json:"id"`      // the agent's id of the call; empty: the agent has no ids

	Run    string        `json:"run,omitempty"`    // id of the claimed run; empty: nothing is claimed, or the gateway has no ids of runs
	Status client.Status `json:"status,omitempty"` // the outcome of a call that has ended
	Text   string        `json:"text,omitempty"`   // the error of a call that failed

	path string // path of the file, without the extension
	in   string // the extension of the file
}

// The extensions of file names, which are the states of records.
const (
	open    = ".open"    // a process waits for the decision
	left    = ".left"    // the process has ended without a decision; if the call is repeated, it continues the request
	claimed = ".claimed" // the approval is claimed, so the call may have run; its outcome is not reported yet

	unreported = ".unreported" // the call has ended, and the report of its outcome failed
)

// keepRecords is the maximum age of a record. An older record is useless: its request expired at the gateway long ago,
// or people were asked about its outcome.
const keepRecords = 7 * 24 * time.Hour

// state keeps the records of one session in files. Its records are the files in dir whose names begin with prefix. In a
// name, the creation time follows the prefix, so the list of the names begins with the oldest record.
type state struct{ dir, prefix string }

// session returns the records of an agent's session.
func session(dir, agent, id string) state {
	return state{dir, agent + "-" + fingerprint(id)[:24] + "-"}
}

// fingerprint returns a hash that identifies a list of texts.
func fingerprint(parts ...string) string {
	list, err := json.Marshal(parts)
	if err != nil {
		panic(err) // encoding strings can't fail
	}
	sum := sha256.Sum256(list)
	return hex.EncodeToString(sum[:])
}

// ranAs returns the fingerprint by which the event after a call finds the call's record. Equal JSON values have the same
// fingerprint, because an agent may write the arguments in other bytes than an approver. Version 0.1.0 made the
// fingerprint from the exact bytes, which are the same here for compact arguments with sorted names.
func ranAs(tool string, args json.RawMessage) string {
	var value any
	if json.Unmarshal(args, &value) == nil {
		args = bytes.TrimSpace(encode(value))
	}
	return fingerprint(tool, string(args))
}

// list returns the records with an extension, oldest first.
func (s state) list(extension string) []record {
	files, err := os.ReadDir(s.dir)
	if err != nil {
		return nil // the folder does not exist, so there are no records
	}
	var list []record
	for _, f := range files {
		if filepath.Ext(f.Name()) != extension || !strings.HasPrefix(f.Name(), s.prefix) {
			continue
		}
		r := record{path: filepath.Join(s.dir, strings.TrimSuffix(f.Name(), extension)), in: extension}
		text, err := os.ReadFile(r.path + extension)
		if err == nil && json.Unmarshal(text, &r) == nil {
			list = append(list, r)
		}
	}
	return list
}

// find returns the newest record of a call in a given state. If the record and the call both have an id from the
// agent, find compares the ids. If an id is missing, find compares the fingerprints. An older record with the same
// fingerprint is normally about a call that did not run, and that the agent repeated.
func (s state) find(extension, id, fingerprint string) (record, bool) {
	for _, r := range slices.Backward(s.list(extension)) {
		if id != "" && r.ID != "" {
			if id == r.ID {
				return r, true
			}
			continue
		}
		if r.Call == fingerprint || slices.Contains(r.Ran, fingerprint) {
			return r, true
		}
	}
	return record{}, false
}

// begin returns the record of a call. The result resumed is true if the record continues an existing request. This is
// the request of an earlier call that ended without a decision, or of another process that waits for the same call.
//
// The hook tells an agent to repeat a call that ended without a decision. For this reason, an identical call is
// treated as the repetition, even if its id is different. There is no time limit, because the record is removed when
// the request is claimed or has ended. If the record's request has ended in the meantime, the gateway reports the
// end.
func (s state) begin(_ context.Context, h *hook, fresh func() string) (r record, resumed bool, err error) {
	for _, r := range s.list(left) {
		if r.Call == h.call && os.Rename(r.path+left, r.path+open) == nil {
			r.ID, r.in = h.id, open
			return r, true, unwritten(r.save(open))
		}
	}
	if r, ok := s.find(open, h.id, h.call); ok {
		return r, true, nil
	}
	r, err = s.create(record{Key: fresh(), Call: h.call, Ran: []string{h.ran}, ID: h.id})
	return r, false, unwritten(err)
}

// unwritten wraps the error of a failed write of a record.
func unwritten(err error) error {
	if err != nil {
		return fmt.Errorf("the state can't be written: %w", err)
	}
	return nil
}

func (s state) mark(*hook) string { return "" }

func (s state) asked(r record) error { return unwritten(r.save(open)) }

func (s state) leave(r record) {
	if r.move(open, left) != nil {
		r.remove(open) // without a record, a repetition of the call creates a new request
	}
}

func (s state) claiming(_ context.Context, h *hook, r *record, changed json.RawMessage) error {
	if changed == nil {
		return nil
	}
	r.Ran = append(r.Ran, ranAs(h.tool, changed)) // some agents report the edited arguments after the call
	return unwritten(r.save(open))
}

func (s state) claimed(r record) error {
	if err := r.save(claimed); err != nil {
		return unwritten(err)
	}
	r.remove(open) // if another process with the same call has already removed the record, this does nothing
	return nil
}

func (s state) drop(r record) { r.remove(r.in) }

func (s state) told(_ context.Context, _ *hook, r record) { s.drop(r) }

func (s state) ran(_ context.Context, h *hook) (record, bool, error) {
	r, ok := s.find(claimed, h.id, h.ran)
	return r, ok, nil
}

func (s state) unreported(r record) error {
	if err := r.save(claimed); err != nil {
		return err
	}
	return r.move(claimed, unreported)
}

func (s state) earlier() []record { return state{s.dir, ""}.list(unreported) }

func (s state) waiting(context.Context, *hook) ([]record, error) {
	return append(s.list(open), s.list(left)...), nil
}

// create stores a new record.
func (s state) create(r record) (record, error) {
	if err := os.MkdirAll(s.dir, 0o700); err != nil {
		return r, err
	}
	s.prune()
	r.in = open
	r.path = filepath.Join(s.dir, s.prefix+time.Now().UTC().Format("20060102T150405.000000000")+"-"+rand.Text()[:8])
	return r, r.save(open)
}

// prune deletes the files in the folder that have not changed for keepRecords. The files are records of all sessions.
func (s state) prune() {
	files, err := os.ReadDir(s.dir)
	if err != nil {
		return
	}
	for _, f := range files {
		if info, err := f.Info(); err == nil && time.Since(info.ModTime()) > keepRecords {
			os.Remove(filepath.Join(s.dir, f.Name()))
		}
	}
}

// save writes a record atomically.
func (r record) save(extension string) error {
	text, err := json.Marshal(r)
	if err != nil {
		return err
	}
	temporary := r.path + ".tmp" + rand.Text()
	if err := os.WriteFile(temporary, text, 0o600); err != nil {
		return err
	}
	return os.Rename(temporary, r.path+extension)
}

// move changes the state of a request by renaming its record.
func (r record) move(from, to string) error { return os.Rename(r.path+from, r.path+to) }

// remove deletes the record of a request.
func (r record) remove(extension string) {
	// A record that stays is pruned later, and the gateway reports that its request has ended.
	os.Remove(r.path + extension)
}
