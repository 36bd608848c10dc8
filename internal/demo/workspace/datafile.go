package workspace

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"countersign/internal/demo/workspace/blockkit"
)

// stored is the data file.
type stored struct {
	Version  int              `json:"version"`
	Team     string           `json:"team"`
	LastTS   int64            `json:"last_ts"`
	Users    []*user          `json:"users"`
	Groups   []*userGroup     `json:"groups"`
	Channels []*channel       `json:"channels"`
	Files    []*file          `json:"files"`
	Homes    map[string]*view `json:"homes"`
}

const storedVersion = 1

// snapshot encodes the data that survives a restart. Modals, ephemerals, triggers and response URLs don't survive,
// because they live only for a short time in Slack, too. snapshot holds the lock only while it copies the state.
func (s *Server) snapshot() ([]byte, error) { return json.Marshal(s.copyState()) }

func (s *Server) copyState() stored {
	s.mu.Lock()
	defer s.mu.Unlock()
	out := stored{Version: storedVersion, Team: s.team.ID, LastTS: s.lastTS, Homes: map[string]*view{}}
	for _, id := range s.accounts.ids {
		u := *s.accounts.byID[id]
		out.Users = append(out.Users, &u)
	}
	for _, g := range s.groups.list {
		group := *g
		out.Groups = append(out.Groups, &group)
	}
	for _, id := range s.channels.ids {
		ch := *s.channels.byID[id]
		ch.LastRead, ch.Members = maps.Clone(ch.LastRead), slices.Clone(ch.Members)
		ch.Threads = make(map[string]*threadInfo, len(ch.Threads))
		for ts, info := range s.channels.byID[id].Threads {
			thread := *info
			ch.Threads[ts] = &thread
		}
		ch.Messages = make([]*message, len(ch.Messages))
		for i, m := range s.channels.byID[id].Messages {
			saved := *m
			ch.Messages[i] = &saved
		}
		out.Channels = append(out.Channels, &ch)
	}
	for _, f := range s.files.byID {
		if f.upload == "" {
			saved := *f
			out.Files = append(out.Files, &saved)
		}
	}
	for id, v := range s.views.homes {
		home := *v
		out.Homes[id] = &home
	}
	return out
}

// load reads the data file. If there is no file yet, load returns false.
func (s *Server) load() (bool, error) {
	if s.cfg.DataFile == "" {
		return false, nil
	}
	raw, err := os.ReadFile(s.cfg.DataFile)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("workspace data: %w", err)
	}
	var in stored
	dec := json.NewDecoder(bytes.NewReader(raw))
	dec.UseNumber() // numbers keep their notation, as in blocks from the app
	if err := dec.Decode(&in); err != nil {
		return false, fmt.Errorf("workspace data %s is damaged (%w): move it away to start afresh", s.cfg.DataFile, err)
	}
	if in.Version != storedVersion {
		return false, fmt.Errorf("workspace data %s has version %d and this program knows version %d: use the program that wrote it, or move the file away to start afresh", s.cfg.DataFile, in.Version, storedVersion)
	}
	if in.Team != s.team.ID {
		return false, fmt.Errorf("workspace data %s is of the team %s, the seed is of %s: use another file", s.cfg.DataFile, in.Team, s.team.ID)
	}
	for _, u := range in.Users {
		s.accounts.add(u)
	}
	for _, c := range in.Channels {
		s.channels.add(c)
	}
	for _, f := range in.Files {
		s.files.byID[f.ID] = f
	}
	s.groups.list, s.lastTS = in.Groups, in.LastTS
	for id, v := range in.Homes {
		v.state = blockkit.NewState(v.Blocks, nil)
		s.views.homes[id] = v
	}
	return true, nil
}

// saver writes the data file shortly after a change, and when the server closes.
type saver struct {
	path  string
	log   *slog.Logger
	take  func() ([]byte, error)
	dirty chan struct{}
	stop  chan struct{}
	once  sync.Once
	done  chan struct{}
	last  error
}

// saveDelay is how long changes are collected before a write.
const saveDelay = 200 * time.Millisecond

func newSaver(cfg Config, take func() ([]byte, error)) *saver {
	v := &saver{path: cfg.DataFile, log: cfg.Log, take: take, dirty: make(chan struct{}, 1), stop: make(chan struct{}), done: make(chan struct{})}
	if v.path == "" {
		close(v.done)
		return v
	}
	go v.run()
	return v
}

// touch reports a change to the saver, and never blocks.
func (v *saver) touch() {
	select {
	case v.dirty <- struct{}{}:
	default:
	}
}

func (v *saver) run() {
	defer close(v.done)
	var pause time.Duration
	for {
		select {
		case <-v.stop:
			v.last = v.save()
			return
		case <-v.dirty:
		}
		timer := time.NewTimer(max(saveDelay, pause))
		select {
		case <-v.stop:
			timer.Stop()
			v.last = v.save()
			return
		case <-timer.C:
		}
		began := time.Now()
		if err := v.save(); err != nil {
			v.log.Error("workspace data not saved", "error", err)
		}
		pause = 10 * time.Since(began) // limits the time spent on writing a large workspace
	}
}

// save writes a new file beside the old file, and then replaces the old file.
func (v *saver) save() error {
	raw, err := v.take()
	if err != nil {
		return fmt.Errorf("encode workspace data: %w", err)
	}
	if err := os.MkdirAll(filepath.Dir(v.path), 0o700); err != nil {
		return fmt.Errorf("save workspace data: %w", err)
	}
	next := v.path + ".new"
	if err := writeSynced(next, raw); err != nil {
		return fmt.Errorf("save workspace data: %w", err)
	}
	if err := os.Rename(next, v.path); err != nil {
		return fmt.Errorf("save workspace data: %w", err)
	}
	return nil
}

func writeSynced(path string, raw []byte) error {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_WRONLY|os.O_TRUNC, 0o600)
	if err != nil {
		return err
	}
	_, err = f.Write(raw)
	return errors.Join(err, f.Sync(), f.Close())
}

func (v *saver) close() error {
	v.once.Do(func() { close(v.stop) })
	<-v.done
	return v.last
}
