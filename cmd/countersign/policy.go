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

	"countersign/agent"
	"countersign/agent/catalog"
	"countersign/approvers"
	"countersign/approvers/workflow"
	"countersign/cmd/countersign/cli"
	"countersign/config"
	"countersign/config/check"
	"countersign/config/yamldoc"
	"countersign/store"
)

// policyPath returns the policy file of a command: the given one, or that of the environment.
func policyPath(given string) (string, error) {
	if given != "" {
		return given, nil
	}
	env, err := config.ReadEnv(config.Offline)
	if err != nil {
		return "", cli.Misused("the environment can't be used:\n%w", err)
	}
	return env.Policy, nil
}

// readPolicy reads a policy file and its tools, as far as they are known without contacting a server. It accepts only a
// policy with which the bot would start.
func readPolicy(path string) (*approvers.Policy, *agent.Registry, error) {
	file, err := check.Read(path)
	if err != nil {
		return nil, nil, cli.Misused("the policy can't be used:\n%w", err)
	}
	tools, err := catalog.Offline(file, path)
	if err != nil {
		return nil, nil, misconfigured(err)
	}
	file.Policy = catalog.WithTools(file.Policy, tools)
	if errs := check.Run(file, catalog.Described(tools)).Errors(); len(errs) > 0 {
		return nil, nil, cli.Misused("the policy can't be used:\n%w", errs)
	}
	return file.Policy, tools, nil
}

// policyFor reads the policy of a command, as readPolicy does.
func policyFor(given string) (*approvers.Policy, *agent.Registry, error) {
	path, err := policyPath(given)
	if err != nil {
		return nil, nil, err
	}
	return readPolicy(path)
}

// misconfigured gives faults of the policy's sources and of the lock file the exit code of a wrong configuration.
func misconfigured(err error) error {
	var wrong yamldoc.Problems
	if errors.As(err, &wrong) {
		return cli.Misused("the policy can't be used:\n%w", wrong)
	}
	if lock := new(catalog.LockError); errors.As(err, &lock) {
		return cli.Misused("%w", err)
	}
	return err
}

// policies watches the policy file. A changed file comes into force without a restart if the bot would accept it at a
// start. Otherwise the previous policy stays in force.
type policies struct {
	tools  *catalog.Catalog // has the policy in force
	log    *slog.Logger
	hangup chan os.Signal // signals that the file is complete; nil: no signals

	failure atomic.Pointer[refusal] // why the file is not in force; nil: it is in force

	mu      sync.Mutex
	path    string // empty: the policy is compiled in
	seen    string // the last content read
	refused string // the last rejected content, so that it is logged once
}

// refusal is the reason why a policy file did not come into force.
type refusal struct {
	at  time.Time
	why error
}

// policyPoll is the interval between checks of the file.
const policyPoll = 2 * time.Second

// openPolicies reads the policy from a file.
func openPolicies(path string, tools *catalog.Catalog, log *slog.Logger) (*policies, error) {
	ps := &policies{tools: tools, log: log, path: path}
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
func newPolicies(name string, data []byte, tools *catalog.Catalog, log *slog.Logger) (*policies, error) {
	ps := &policies{tools: tools, log: log}
	return ps, ps.begin(name, data)
}

// begin puts the first policy into force.
func (ps *policies) begin(name string, data []byte) error {
	file, err := ps.check(name, data)
	if err != nil {
		return err
	}
	return ps.tools.Adopt(file, ps.path)
}

// check parses a policy and checks it against the callable tools. Warnings are logged.
func (ps *policies) check(name string, data []byte) (*config.File, error) {
	file, err := check.Parse(name, data)
	if err != nil {
		return nil, err
	}
	known, err := ps.tools.Known(file, ps.path)
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
			err := wf.Requests.Reevaluate(ctx)
			if errors.Is(err, store.ErrCommitUnknown) {
				return err
			}
			if err != nil && ctx.Err() == nil {
				ps.log.Error("open requests could not be checked against the policy in force; this is tried again", "error", err)
			}
			behind = err != nil
		}
		ps.tools.ReportDrift()
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
// Otherwise two checks in a row must find the same content, because the first half of a file may be a valid policy too.
func (ps *policies) look(whole bool) (changed bool) {
	ps.mu.Lock()
	defer ps.mu.Unlock()
	if ps.path == "" {
		return false
	}
	defer func() { changed = ps.tools.ReloadLock(whole) || changed }()
	data, err := config.ReadFile(ps.path)
	found := config.Hash(data)
	if err != nil {
		found = err.Error()
	}
	before := ps.tools.Policy()
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
		err = ps.tools.Adopt(file, ps.path)
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
		ps.log.Info("the policy file is the one in force", "file", ps.path, "hash", ps.tools.Policy().File())
	}
	ps.refused = ""
}

// refuse keeps the policy in force, and logs the faults of the file.
func (ps *policies) refuse(found string, why error) {
	ps.refused = found
	ps.failure.Store(&refusal{at: time.Now(), why: why})
	ps.log.Error("the policy file changed and was refused; the previous policy stays in force", "file", ps.path, "in force", ps.tools.Policy().File())
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
	return fmt.Errorf("the file was refused at %s, and the previous policy is in force: %w%s", failure.at.UTC().Format(time.RFC3339), problems[0], more)
}
