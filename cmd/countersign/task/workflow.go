package task

import (
	"context"
	"errors"
	"fmt"
	"log/slog"

	"countersign/agent"
	"countersign/approvers"
	"countersign/approvers/workflow"
	"countersign/cmd/countersign/cli"
	"countersign/cmd/countersign/openstore"
	"countersign/cmd/countersign/policyfile"
	"countersign/config"
	"countersign/internal/redact"
	"countersign/store"
)

// workflowAfter returns a workflow on the store of a stopped bot. This workflow can list and report the store's
// interrupted runs.
func workflowAfter(ctx context.Context, env config.Env, db store.Store) (*workflow.Workflow, error) {
	wf, err := LocalWorkflow(ctx, env, db, nil)
	if err != nil {
		return nil, err
	}
	if err := wf.Runs.MarkInterrupted(ctx); err != nil {
		return nil, cli.CouldNot("the bot stopped while a tool ran, and that can't be recorded: %w", err)
	}
	return wf, nil
}

// workflowWithoutPolicy returns a workflow like LocalWorkflow. If the policy can't be used, nobody has a role in this
// workflow.
func workflowWithoutPolicy(ctx context.Context, env config.Env, db store.Store, r store.Replica) (*workflow.Workflow, error) {
	wf, err := LocalWorkflow(ctx, env, db, r)
	if cli.Code(err) != cli.ExitUsage {
		return wf, err
	}
	now, err := openstore.Clock(ctx, db)
	if err != nil {
		return nil, err
	}
	noPolicy := func() *approvers.Policy { return new(approvers.Policy) }
	return workflow.New(workflow.Config{Store: db, Replica: r, Now: now, Policy: noPolicy, Tools: new(agent.Registry), Log: slog.New(slog.DiscardHandler)}), nil
}

// LocalWorkflow returns a workflow of this process. If r is nil, no other process may have the store open. If the store
// is a file, the workflow uses the policy file, which comes into force when the bot starts. If the policy file can't be
// used, the workflow uses the policy in force, as a running bot does. If the store is a database, the workflow uses the
// policy in force in the database. If a database has no policy in force, and r is nil, the workflow also uses the policy
// file.
func LocalWorkflow(ctx context.Context, env config.Env, db store.Store, r store.Replica) (*workflow.Workflow, error) {
	policy, tools, err := (*approvers.Policy)(nil), (*agent.Registry)(nil), store.ErrNotFound
	if env.Store.Backend == config.Postgres {
		policy, tools, err = policyfile.ReadStored(ctx, db)
	}
	if errors.Is(err, store.ErrNotFound) {
		if r != nil { // the first replica is just starting
			return nil, cli.CouldNot("no policy is in force in %s yet: run the command again when the bot is up", env.Store)
		}
		policy, tools, err = readFile(ctx, env.Policy, db)
	}
	if err != nil {
		return nil, err
	}
	now, err := openstore.Clock(ctx, db)
	if err != nil {
		return nil, err
	}
	log := slog.New(slog.NewTextHandler(redact.Writer(cli.Stderr), &slog.HandlerOptions{Level: slog.LevelError}))
	return workflow.New(workflow.Config{Store: db, Replica: r, Now: now, Policy: func() *approvers.Policy { return policy }, Tools: tools, Log: log}), nil
}

// readFile reads the policy file. If the file can't be used, readFile reads the policy in force, and tells the operator.
func readFile(ctx context.Context, path string, db store.Store) (*approvers.Policy, *agent.Registry, error) {
	policy, tools, err := policyfile.Read(path)
	if cli.Code(err) != cli.ExitUsage {
		return policy, tools, err
	}
	policy, tools, stored := policyfile.ReadStored(ctx, db)
	if stored != nil {
		return nil, nil, err
	}
	fmt.Fprintln(cli.Stderr, "countersign: the policy in force is used, because the policy file can't be used:", redact.Error(err))
	return policy, tools, nil
}
