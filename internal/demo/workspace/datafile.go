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
	"strings"
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

// dataFile gives the parts their initial state, from the data file or from the seed, and copies their state for the
// data file.
type dataFile struct {
	*core
	accounts *accounts
	channels *channels
	groups   *userGroups
	messages *messages
	files    *files
	views    *views
}

// snapshot encodes the data that survives a restart. Modals, ephemerals, triggers and response URLs don't survive. In
// Slack, too, they live only for a short time. snapshot holds the lock only while it copies the state.
func (d *dataFile) snapshot() ([]byte, error) { return json.Marshal(d.copyState()) }

func (d *dataFile) copyState() stored {
	d.mu.Lock()
	defer d.mu.Unlock()
	out := stored{Version: storedVersion, Team: d.team.ID, LastTS: d.lastTS, Homes: map[string]*view{}}
	for _, id := range d.accounts.ids {
		u := *d.accounts.byID[id]
		out.Users = append(out.Users, &u)
	}
	for _, g := range d.groups.list {
		group := *g
		out.Groups = append(out.Groups, &group)
	}
	for _, id := range d.channels.ids {
		ch := *d.channels.byID[id]
		ch.LastRead, ch.Members = maps.Clone(ch.LastRead), slices.Clone(ch.Members)
		ch.Threads = make(map[string]*threadInfo, len(ch.Threads))
		for ts, info := range d.channels.byID[id].Threads {
			thread := *info
			ch.Threads[ts] = &thread
		}
		ch.Messages = make([]*message, len(ch.Messages))
		for i, m := range d.channels.byID[id].Messages {
			saved := *m
			ch.Messages[i] = &saved
		}
		out.Channels = append(out.Channels, &ch)
	}
	for _, f := range d.files.byID {
		if f.upload == "" {
			saved := *f
			out.Files = append(out.Files, &saved)
		}
	}
	for id, v := range d.views.homes {
		home := *v
		out.Homes[id] = &home
	}
	return out
}

// load reads the data file. If there is no file yet, load returns false.
func (d *dataFile) load() (bool, error) {
	if d.cfg.DataFile == "" {
		return false, nil
	}
	raw, err := os.ReadFile(d.cfg.DataFile)
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
		return false, fmt.Errorf("workspace data %s is damaged (%w): move it away to start afresh", d.cfg.DataFile, err)
	}
	if in.Version != storedVersion {
		return false, fmt.Errorf("workspace data %s has version %d and this program knows version %d: use the program that wrote it, or move the file away to start afresh", d.cfg.DataFile, in.Version, storedVersion)
	}
	if in.Team != d.team.ID {
		return false, fmt.Errorf("workspace data %s is of the team %s, the seed is of %s: use another file", d.cfg.DataFile, in.Team, d.team.ID)
	}
	for _, u := range in.Users {
		d.accounts.add(u)
	}
	for _, c := range in.Channels {
		d.channels.add(c)
	}
	for _, f := range in.Files {
		d.files.byID[f.ID] = f
	}
	d.groups.list, d.lastTS = in.Groups, in.LastTS
	for id, v := range in.Homes {
		v.state = blockkit.NewState(v.Blocks, nil)
		d.views.homes[id] = v
	}
	return true, nil
}

// fill fills an empty workspace from the seed.
func (d *dataFile) fill(seed Seed) {
	now := d.cfg.Now()
	for _, p := range seed.People {
		d.accounts.add(newUser(p, seed.Team.ID, now))
	}
	for _, g := range seed.Groups {
		d.groups.list = append(d.groups.list, &userGroup{ID: g.ID, Handle: g.Handle, Name: g.Name, Users: slices.Clone(g.Users), Updated: now.Unix()})
	}
	for _, c := range seed.Channels {
		ch := &channel{
			ID: c.ID, Name: c.Name, Topic: c.Topic, Purpose: c.Purpose, Private: c.Private, Archived: c.Archived,
			General: c.General, Shared: c.Shared, Members: slices.Clone(c.Members), Created: now.Unix(),
		}
		if len(ch.Members) > 0 {
			ch.Creator = ch.Members[0]
		}
		d.channels.add(ch)
	}
	d.lastTS = now.UnixMicro() - 1
}

// index restores the state that the data file does not contain: the bot user, the lookup tables, and the DMs with the
// bot.
func (d *dataFile) index() {
	now := d.cfg.Now()
	d.botUser = d.accounts.byID[d.app.BotUser]
	if d.botUser == nil {
		d.botUser = newUser(SeedPerson{ID: d.app.BotUser, Name: strings.ToLower(strings.ReplaceAll(d.app.Name, " ", "")), RealName: d.app.Name, Bot: true}, d.team.ID, now)
		d.accounts.add(d.botUser)
	}
	d.botUser.Bot, d.botUser.BotID, d.botUser.AppID = true, d.app.BotID, d.app.ID
	d.botUser.DisplayName, d.botUser.RealName = d.app.Name, d.app.Name
	for _, c := range d.channels.byID {
		c.index()
		for _, m := range c.Messages {
			if m.BotID == d.app.BotID {
				m.profile = d.messages.profile()
			}
		}
		if c.IM {
			d.channels.dms[pair(c.Members[0], c.other(c.Members[0]))] = c.ID
		}
	}
	for _, id := range d.accounts.ids {
		if u := d.accounts.byID[id]; u.person() && !u.Deleted && !u.Stranger {
			d.channels.openDM(u.ID, d.botUser.ID)
		}
	}
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
