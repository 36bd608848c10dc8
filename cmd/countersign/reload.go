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

	"countersign/approvers/workflow"
	"countersign/cmd/countersign/cli"
	"countersign/config"
	"countersign/config/check"
	"countersign/store"
)

// policies holds the policy in force and its file. A changed file comes into force without a restart, if it would be
// accepted at the start; until then the previous policy stays.
type policies struct {
	tools  *toolbox
	log    *slog.Logger
	hangup chan os.Signal // signals that the file is complete; nil: no signals

	active        activePolicy
	driftReporter *driftReporter
	failure       atomic.Pointer[refusal] // why the file is not in force; nil: it is in force

	mu      sync.Mutex
	path    string       // empty: the policy is compiled in
	seen    string       // the last content read
	refused string       // the last rejected content, so that it is logged once
	file    *config.File // of the policy in force
	lock    lockFile
}

// refusal is the reason why a policy file did not come into force.
type refusal struct {
	at  time.Time
	why error
}

// policyPoll is the interval between checks of the file.
const policyPoll = 2 * time.Second

// openPolicies reads the policy from a file.
func openPolicies(path string, tools *toolbox, log *slog.Logger) (*policies, error) {
	ps := makePolicies(path, tools, log)
	data, err := config.ReadFile(path)
	if err == nil {
		err = ps.begin(path, data)
	}
	if err != nil {
		return nil, cli.Misused("the policy can't be used:\n%w", err)
	}
	return ps, nil
}

// newPolicies puts a policy without a file into force. name is its name in problems.
func newPolicies(name string, data []byte, tools *toolbox, log *slog.Logger) (*policies, error) {
	ps := makePolicies("", tools, log)
	return ps, ps.begin(name, data)
}

func makePolicies(path string, tools *toolbox, log *slog.Logger) *policies {
	return &policies{tools: tools, log: log, path: path, active: activePolicy{tools: tools.Registry}, driftReporter: &driftReporter{tools: tools.Registry, log: log}}
}

// begin puts the first policy into force.
func (ps *policies) begin(name string, data []byte) error {
	file, err := ps.check(name, data)
	if err != nil {
		return err
	}
	return ps.adopt(file)
}

// adopt puts a policy into force and connects its sources.
func (ps *policies) adopt(file *config.File) error {
	found := findLock(ps.path)
	if err := ps.tools.want(file, ps.path); err != nil {
		return err
	}
	ps.active.Store(file.Policy)
	ps.file = file
	ps.lock.taken(found)
	return nil
}

// check parses a policy and checks it against the callable tools. Warnings are logged.
func (ps *policies) check(name string, data []byte) (*config.File, error) {
	file, err := config.ParsePolicy(name, data)
	if err != nil {
		return nil, err
	}
	known, err := ps.tools.known(file, ps.path)
	if err != nil {
		return nil, err
	}
	problems := check.Run(file, known)
	for _, w := range problems.Warnings() {
		ps.log.Warn("policy: " + w.Error())
	}
	if errs := problems.Errors(); len(errs) > 0 {
		return nil, errs
	}
	return file, nil
}

// watch applies changes of the policy file and the lock file until ctx ends, reports tools that differ from their pins,
// and checks the waiting requests against the new state.
func (ps *policies) watch(ctx context.Context, wf *workflow.Workflow) error {
	tick := time.NewTicker(policyPoll)
	defer tick.Stop()
	for behind := true; ; {
		if behind {
			err := wf.Reevaluate(ctx)
			if errors.Is(err, store.ErrCommitUnknown) {
				return err
			}
			if err != nil && ctx.Err() == nil {
				ps.log.Error("what waits could not be held against the policy in force; it is tried again", "error", err)
			}
			behind = err != nil
		}
		ps.driftReporter.tell()
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

// look reads the file and puts it into force if it is new and valid. whole means that the file is known to be complete.
// Otherwise it has to be unchanged twice, because the first half of a file may be a valid policy too.
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
	before := ps.active.Load()
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

// stays records that the file equals the policy in force.
func (ps *policies) stays(asked bool) {
	if ps.failure.Swap(nil) != nil || asked {
		ps.log.Info("the policy file is the one in force", "file", ps.path, "hash", ps.active.Load().File())
	}
	ps.refused = ""
}

// refuse keeps the policy in force, and logs the faults of the file.
func (ps *policies) refuse(found string, why error) {
	ps.refused = found
	ps.failure.Store(&refusal{at: time.Now(), why: why})
	ps.log.Error("the policy file changed and was refused; the policy before it stays in force", "file", ps.path, "in force", ps.active.Load().File())
	for _, problem := range cli.Problems(why) {
		ps.log.Error("policy: " + problem.Error())
	}
}

// become switches to another policy file. It returns the reason if that file can't be used.
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

// state reports on /readyz whether the file was refused. The bot stays ready, because it uses the previous policy.
func (ps *policies) state(context.Context) error {
	failure := ps.failure.Load()
	if failure == nil {
		return nil
	}
	problems := cli.Problems(failure.why)
	more := ""
	if n := len(problems) - 1; n > 0 {
		more = fmt.Sprintf(" (and %d more)", n)
	}
	return fmt.Errorf("the file was refused at %s, and the policy before it is in force: %w%s", failure.at.UTC().Format(time.RFC3339), problems[0], more)
}
