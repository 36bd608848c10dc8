package policyfile

import (
	"context"
	"errors"
	"log/slog"
	"os"

	"countersign/agent"
	"countersign/agent/catalog"
	"countersign/agent/pins"
	"countersign/approvers"
	"countersign/approvers/workflow"
	"countersign/cmd/countersign/cli"
	"countersign/config"
	"countersign/config/check"
	"countersign/config/yamldoc"
	"countersign/store"
)

// Path returns the path of a command's policy file. This is the given path, or else the path in the environment.
func Path(given string) (string, error) {
	if given != "" {
		return given, nil
	}
	env, err := config.ReadEnv(config.Offline)
	if err != nil {
		return "", cli.Misused("the environment can't be used:\n%w", err)
	}
	return env.Policy, nil
}

// Read reads a policy file, and those of its tools that are known without contacting a server. Read accepts only a
// policy with which the bot would start.
func Read(path string) (*approvers.Policy, *agent.Registry, error) {
	file, tools, err := read(path, path)
	if err != nil {
		return nil, nil, err
	}
	return file.Policy, tools, nil
}

// read reads a policy file with the pins in the lock file beside another policy file.
func read(path, pinned string) (*config.File, *agent.Registry, error) {
	file, err := check.Read(path)
	if err != nil {
		return nil, nil, cli.Misused("the policy can't be used:\n%w", err)
	}
	tools, err := catalog.Offline(file, pinned)
	if err := withTools(file, tools, err); err != nil {
		return nil, nil, err
	}
	return file, tools, nil
}

// withTools adds the tools to a file's policy, and checks the policy. err is the error of reading the tools.
func withTools(file *config.File, tools *agent.Registry, err error) error {
	if err != nil {
		return Misconfigured(err)
	}
	file.Policy = catalog.WithTools(file.Policy, tools)
	if errs := check.Run(file, catalog.Described(tools)).Errors(); len(errs) > 0 {
		return cli.Misused("the policy can't be used:\n%w", errs)
	}
	return nil
}

// ReadStored reads the policy in force in a store that several processes may use. If no policy is stored, the error
// is store.ErrNotFound.
func ReadStored(ctx context.Context, db store.Store) (*approvers.Policy, *agent.Registry, error) {
	none := func() *approvers.Policy { return new(approvers.Policy) }
	s := Source{workflow: workflow.New(workflow.Config{Store: db, Policy: none, Tools: new(agent.Registry), Log: slog.New(slog.DiscardHandler)})}
	row, stored, err := s.load(ctx)
	if err != nil {
		return nil, nil, err
	}
	file, lock, err := stored.content.Parse(inForceName)
	if err != nil {
		return nil, nil, cli.Misused("%w", unusable(row, err))
	}
	tools, err := catalog.OfflineWith(file, lock, pins.Beside(inForceName))
	if err := withTools(file, tools, err); err != nil {
		return nil, nil, err
	}
	file.Policy.Load = row.Load
	return file.Policy, tools, nil
}

// ReadGiven reads the policy of a command in the same way as Read. The policy is part of the returned file.
func ReadGiven(given string) (*config.File, *agent.Registry, error) {
	path, err := Path(given)
	if err != nil {
		return nil, nil, err
	}
	return read(path, path)
}

// Given is a policy file of a command, with the tools that are known without contacting a server.
type Given struct {
	File  *config.File
	Tools *agent.Registry
}

// ReadBoth reads two policy files that a command compares. If only one of them has a lock file, ReadBoth uses its pins
// for both files, because otherwise equal policies would differ. The result named shared is then the path of this lock
// file.
func ReadBoth(given, against string) (a, b Given, shared string, err error) {
	path, err := Path(given)
	if err != nil {
		return a, b, "", err
	}
	pinned, otherPinned := path, against
	switch has, otherHas := hasLock(path), hasLock(against); {
	case has && !otherHas:
		otherPinned, shared = path, pins.Beside(path)
	case !has && otherHas:
		pinned, shared = against, pins.Beside(against)
	}
	if a.File, a.Tools, err = read(path, pinned); err != nil {
		return a, b, "", err
	}
	b.File, b.Tools, err = read(against, otherPinned)
	return a, b, shared, err
}

func hasLock(policy string) bool {
	_, err := os.Lstat(pins.Beside(policy))
	return err == nil
}

// Misconfigured adds the exit code of a wrong configuration to errors about the policy's tool sources and the lock
// file.
func Misconfigured(err error) error {
	var wrong yamldoc.Problems
	if errors.As(err, &wrong) {
		return cli.Misused("the policy can't be used:\n%w", wrong)
	}
	if lock := new(catalog.LockError); errors.As(err, &lock) {
		return cli.Misused("%w", err)
	}
	return err
}
