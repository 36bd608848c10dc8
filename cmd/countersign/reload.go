package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"countersign/approvers/desk"
	"countersign/config"
	"countersign/store"
)

// policies is the policy in force and the file that it is read from. A file that changes comes into force without a restart, if it is as good as
// one has to be at the start; until it is, the policy before it stays.
type policies struct {
	tools  *toolbox
	log    *slog.Logger
	hangup chan os.Signal // says that the file is whole now; nil: nobody says so

	inForce inForce
	drifts  *drifts
	failure atomic.Pointer[refusal] // why the file is not in force; nil: it is

	mu      sync.Mutex
	path    string       // empty: the policy is built in
	seen    string       // what was found in the file last
	refused string       // what was refused last, so that it is said once
	file    *config.File // of the policy in force
	lock    lockFile
}

// refusal says why a policy file did not come into force.
type refusal struct {
	at  time.Time
	why error
}

// policyPoll is how often the file is looked at.
const policyPoll = 2 * time.Second

// openPolicies reads the policy from a file.
func openPolicies(path string, tools *toolbox, log *slog.Logger) (*policies, error) {
	ps := makePolicies(path, tools, log)
	data, err := config.ReadFile(path)
	if err == nil {
		err = ps.begin(path, data)
	}
	if err != nil {
		return nil, misused("the policy can't be used:\n%w", err)
	}
	return ps, nil
}

// newPolicies puts a policy into force that is in no file. name is what its problems call it.
func newPolicies(name string, data []byte, tools *toolbox, log *slog.Logger) (*policies, error) {
	ps := makePolicies("", tools, log)
	return ps, ps.begin(name, data)
}

func makePolicies(path string, tools *toolbox, log *slog.Logger) *policies {
	return &policies{tools: tools, log: log, path: path, inForce: inForce{tools: tools.Registry}, drifts: &drifts{tools: tools.Registry, log: log}}
}

// begin puts a first policy into force.
func (ps *policies) begin(name string, data []byte) error {
	file, err := ps.check(name, data)
	if err != nil {
		return err
	}
	return ps.adopt(file)
}

// adopt puts a policy into force, and has its sources kept.
func (ps *policies) adopt(file *config.File) error {
	found := findLock(ps.path)
	if err := ps.tools.want(file, ps.path); err != nil {
		return err
	}
	ps.inForce.Store(file.Policy)
	ps.file = file
	ps.lock.taken(found)
	return nil
}

// check reads a policy and holds it against the tools that can be called. Warnings are logged.
func (ps *policies) check(name string, data []byte) (*config.File, error) {
	file, err := config.ParsePolicy(name, data)
	if err != nil {
		return nil, err
	}
	known, err := ps.tools.known(file, ps.path)
	if err != nil {
		return nil, err
	}
	problems := file.Check(known)
	for _, w := range problems.Warnings() {
		ps.log.Warn("policy: " + w.Error())
	}
	if errs := problems.Errors(); len(errs) > 0 {
		return nil, errs
	}
	return file, nil
}

// watch takes up changes of the policy file and of the lock file until ctx ends, tells of tools that are not what was pinned, and holds what waits against all of that.
func (ps *policies) watch(ctx context.Context, d *desk.Desk) error {
	tick := time.NewTicker(policyPoll)
	defer tick.Stop()
	for behind := true; ; {
		if behind {
			err := d.Reconsider(ctx)
			if errors.Is(err, store.ErrCommitUnknown) {
				return err
			}
			if err != nil && ctx.Err() == nil {
				ps.log.Error("what waits could not be held against the policy in force; it is tried again", "error", err)
			}
			behind = err != nil
		}
		ps.drifts.tell()
		select {
		case <-ctx.Done():
			return nil
		case <-ps.tools.Changed():
			behind = true
		case <-ps.hangup:
			behind = ps.look(true) || behind
		case <-tick.C:
			behind = ps.look(false) || behind
		}
	}
}

// look reads the file, and puts it into force if it is another one and good. whole says that somebody vouches for its being whole; otherwise it
// has to be found unchanged twice, as the first half of a file may be a policy too.
func (ps *policies) look(whole bool) (changed bool) {
	ps.mu.Lock()
	defer ps.mu.Unlock()
	if ps.path == "" {
		return false
	}
	defer func() { changed = ps.lookAtLock(whole) || changed }()
	data, err := config.ReadFile(ps.path)
	found := config.Hash(data)
	if err != nil {
		found = err.Error()
	}
	before := ps.inForce.Load()
	switch {
	case found == before.File():
		ps.stays(whole)
		ps.seen = found
		return false
	case !whole && (found != ps.seen || found == ps.refused):
		ps.seen = found
		return false
	}
	ps.seen = found
	var file *config.File
	if err == nil {
		file, err = ps.check(ps.path, data)
	}
	if err == nil {
		err = ps.adopt(file)
	}
	if err != nil {
		ps.refuse(found, err)
		return false
	}
	ps.failure.Store(nil)
	ps.refused = ""
	ps.log.Info("the policy changed and is in force", "file", ps.path, "old", before.File(), "new", file.Policy.Hash)
	return true
}

// stays notes that the file is what is in force.
func (ps *policies) stays(asked bool) {
	if ps.failure.Swap(nil) != nil || asked {
		ps.log.Info("the policy file is the one in force", "file", ps.path, "hash", ps.inForce.Load().File())
	}
	ps.refused = ""
}

// refuse keeps the policy in force, and says what is wrong with the file.
func (ps *policies) refuse(found string, why error) {
	ps.refused = found
	ps.failure.Store(&refusal{at: time.Now(), why: why})
	ps.log.Error("the policy file changed and was refused; the policy before it stays in force", "file", ps.path, "in force", ps.inForce.Load().File())
	for _, problem := range problemsIn(why) {
		ps.log.Error("policy: " + problem.Error())
	}
}

// problemsIn lists what is wrong with a policy file, one by one.
func problemsIn(err error) []error {
	var all config.Problems
	if !errors.As(err, &all) {
		return []error{err}
	}
	var out []error
	for _, p := range all.Errors() {
		out = append(out, p)
	}
	return out
}

// become reads the policy from another file from now on, and says why that file can't be used, or nil.
func (ps *policies) become(path string) error {
	ps.mu.Lock()
	ps.path = path
	ps.mu.Unlock()
	ps.look(true)
	if failure := ps.failure.Load(); failure != nil {
		return failure.why
	}
	return nil
}

// state says on /readyz what became of the file. A refused one leaves the bot ready: it works by the policy before.
func (ps *policies) state(context.Context) error {
	failure := ps.failure.Load()
	if failure == nil {
		return nil
	}
	problems := problemsIn(failure.why)
	more := ""
	if n := len(problems) - 1; n > 0 {
		more = fmt.Sprintf(" (and %d more)", n)
	}
	return fmt.Errorf("the file was refused at %s, and the policy before it is in force: %w%s", failure.at.UTC().Format(time.RFC3339), problems[0], more)
}
