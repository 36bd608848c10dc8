package hook

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"countersign/agent/client"
)

// A record keeps a request between the processes of a session's hooks. A record is a file. The extension of the file's
// name is the state of the request. Only one process succeeds in renaming the file to another state, so a request has
// only one owner.
type record struct {
	Key     string   `json:"key"`     // the idempotency key
	Request string   `json:"request"` // empty: not known yet
	Call    string   `json:"call"`    // fingerprint of the call and its folder
	Ran     []string `json:"ran"`     // fingerprints of the call as asked about and as edited, in any folder
	ID      string   `json:"id"`      // the agent's id of the call, or empty

	Status client.Status `json:"status,omitempty"` // the outcome of a call that has ended
	Text   string        `json:"text,omitempty"`   // the error of a call that failed

	path string // without the extension
}

// The extensions.
const (
	open    = ".open"    // a process waits for the decision
	left    = ".left"    // it waits no longer: whoever repeats the call continues
	claimed = ".claimed" // the call may have run; its outcome is not reported yet

	unreported = ".unreported" // the call has ended, and the gateway could not be told its outcome
)

// keepRecords is how long a record is kept if no event removes it. The gateway ends requests, and asks people about
// outcomes, much earlier.
const keepRecords = 7 * 24 * time.Hour

// state has the records of one session. The records are the files in a folder whose names begin with the prefix. After
// the prefix, a name has the time. So the oldest record is listed first.
type state struct{ dir, prefix string }

// session returns the records of an agent's session.
func session(dir, agent, id string) state {
	return state{dir, agent + "-" + fingerprint(id)[:24] + "-"}
}

// everySession returns the records of all sessions of all agents.
func everySession(dir string) state { return state{dir, ""} }

// fingerprint returns a hash that identifies a list of texts.
func fingerprint(parts ...string) string {
	list, err := json.Marshal(parts)
	if err != nil {
		panic(err) // strings
	}
	sum := sha256.Sum256(list)
	return hex.EncodeToString(sum[:])
}

// list returns the records with an extension, oldest first.
func (s state) list(extension string) []record {
	files, err := os.ReadDir(s.dir)
	if err != nil {
		return nil // there are none yet
	}
	var list []record
	for _, f := range files {
		if filepath.Ext(f.Name()) != extension || !strings.HasPrefix(f.Name(), s.prefix) {
			continue
		}
		r := record{path: filepath.Join(s.dir, strings.TrimSuffix(f.Name(), extension))}
		text, err := os.ReadFile(r.path + extension)
		if err == nil && json.Unmarshal(text, &r) == nil {
			list = append(list, r)
		}
	}
	return list
}

// find returns the first record of a call that has an extension. If the record and the call both have an id of the
// agent, find compares the ids. Otherwise find compares fingerprints.
func (s state) find(extension, id, fingerprint string) (record, bool) {
	for _, r := range s.list(extension) {
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

// begin returns the record of a call. resumed is set if the record continues an earlier request. Such a request belongs
// to a call that was left, or to another process that waits for the same call.
//
// An agent repeats a call because it was told to. So if an identical call comes after a left call, it is the repetition
// of that call, even if it has another id. No time limit is needed. The record is removed when the request is claimed
// or has ended. If a record is stale, the gateway reports this when it is asked.
func (s state) begin(id, call, ran string, fresh func() string) (r record, resumed bool, err error) {
	for _, r := range s.list(left) {
		if r.Call == call && os.Rename(r.path+left, r.path+open) == nil {
			r.ID = id
			return r, true, r.save(open)
		}
	}
	if r, ok := s.find(open, id, call); ok {
		return r, true, nil
	}
	r, err = s.create(record{Key: fresh(), Call: call, Ran: []string{ran}, ID: id})
	return r, false, err
}

// create stores a new record.
func (s state) create(r record) (record, error) {
	if err := os.MkdirAll(s.dir, 0o700); err != nil {
		return r, err
	}
	s.prune()
	r.path = filepath.Join(s.dir, s.prefix+time.Now().UTC().Format("20060102T150405.000000000")+"-"+rand.Text()[:8])
	return r, r.save(open)
}

// prune deletes old records of all sessions that no event has removed.
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

// save writes a record. A reader sees the old record or the new record.
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
	os.Remove(r.path + extension) // a record that stays is pruned later, and the gateway knows that its request is over
}
