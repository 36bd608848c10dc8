package storecmd

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"countersign/agent"
	"countersign/approvers"
	"countersign/approvers/audit"
	"countersign/approvers/workflow"
	"countersign/cmd/countersign/auditcmd"
	"countersign/cmd/countersign/cli"
	"countersign/cmd/countersign/openstore"
	"countersign/cmd/countersign/policyfile"
	"countersign/config"
	"countersign/internal/visible"
	"countersign/store"
	"countersign/store/bolt"
	"countersign/store/postgres"
)

func salvageCommand() *cobra.Command {
	var to string
	cmd := &cobra.Command{
		Use:   "salvage FILE|ADDRESS --to STORE",
		Short: "Creates a new store from everything that can be read of a damaged one",
		Long: `Reads a damaged store, a file or a PostgreSQL database, and writes everything that can still be read into a new store. It lists what is missing, and what follows. The damaged
store is only read. No bot may use it meanwhile. STORE is written as in COUNTERSIGN_STORE; it must be empty, or a file that does not exist.

Use it if there is no backup, or the backup is too old: "countersign restore" puts back a whole store. What happened to the missing part is unknown, so everything that could act
is closed in the new store, as by restore: open requests are voided, runs in progress get an unknown outcome, turns stop, and grants end.

Missing records of the history are recorded in it, and "countersign audit verify" names them from then on.

Exit codes: 0 nothing is missing · 1 the new store is there, and something is missing · 2 wrong usage · 3 there is no new store.`,
		Example: `  countersign store salvage countersign.db --to bolt:salvaged.db
  countersign store salvage postgres://countersign@db.example.com/countersign --to bolt:salvaged.db`,
		Args: cli.Args(1, 1),
		RunE: func(cmd *cobra.Command, args []string) error {
			s := salvage{Copy{Anew: true, Every: progressEvery, Out: cmd.OutOrStdout(), Progress: cmd.ErrOrStderr()}}
			from := args[0]
			if !strings.Contains(from, "://") && !strings.HasPrefix(from, "bolt:") {
				from = "bolt:" + from
			}
			if to == "" {
				return cli.Misused("name the new store, such as --to bolt:salvaged.db")
			}
			if err := s.parse(from, to); err != nil {
				return err
			}
			return s.run(cmd.Context())
		},
	}
	cmd.Flags().StringVar(&to, "to", "", "the new store")
	cli.PathFlags(cmd.Flags(), "to")
	return cmd
}

// salvage copies the readable rows of a damaged store.
type salvage struct{ Copy }

func (s *salvage) run(ctx context.Context) error {
	env, err := config.ReadEnv(config.Offline)
	if err != nil {
		return cli.Misused("the environment can't be used:\n%w", err)
	}
	near := os.TempDir()
	if s.to.Backend == config.Bolt {
		near = filepath.Dir(s.to.Path)
		if _, err := os.Lstat(s.to.Path); err == nil {
			return cli.Misused("nothing was salvaged: %s already exists; name another file, or move it away", s.to.Path)
		}
	}
	dir, err := os.MkdirTemp(near, ".countersign-salvage-*")
	if err != nil {
		return cli.CouldNot("nothing was salvaged: a directory for what is read can't be made: %w", err)
	}
	defer os.RemoveAll(dir)
	path := filepath.Join(dir, "store.db")
	fmt.Fprintf(s.Progress, "reading %s\n", s.from)
	lost, err := s.gather(ctx, dir, path)
	if err == nil {
		err = s.finish(ctx, env, path, lost)
	}
	if err != nil {
		return s.failed(ctx, err)
	}
	if len(lost) > 0 {
		return cli.AnswerNo("%s missing in %s; everything else is there", cli.Count(len(lost), "thing")+are(len(lost)), s.to)
	}
	return nil
}

func are(n int) string {
	if n == 1 {
		return " is"
	}
	return " are"
}

// gather writes the readable rows into a separate store, and marks the lost records in that store.
func (s *salvage) gather(ctx context.Context, dir, path string) ([]store.Damage, error) {
	if s.from.Backend == config.Bolt {
		lost, err := bolt.Salvage(ctx, s.from.Path, path, nil)
		if err != nil {
			return nil, openstore.FileError(err)
		}
		return lost, nil
	}
	db, err := openstore.Database(ctx, s.from, postgres.Options{}, false)
	if err != nil {
		return nil, err
	}
	var missing []bolt.Missing
	rows := filepath.Join(dir, "rows.db")
	err = bolt.Gather(ctx, rows, func(f store.Filling) error {
		missing = nil
		return db.EachReadable(ctx, func(row store.Row) error { return f.Put(ctx, row) }, func(x store.Damage, owner string) {
			missing = append(missing, bolt.Missing{Damage: x, Owner: owner})
		})
	})
	if err := errors.Join(err, db.Close()); err != nil {
		return nil, err
	}
	return bolt.Salvage(ctx, rows, path, missing)
}

// finish closes all records that could cause an action, and copies the result into the new store.
func (s *salvage) finish(ctx context.Context, env config.Env, path string, lost []store.Damage) (err error) {
	db, err := bolt.Open(path, bolt.Options{AsIs: true})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	older, err := audit.FindOlder(ctx, s.from.String(), s.fromAudit.Heads, db)
	if err != nil {
		return err
	}
	policy, tools, err := policyfile.Read(env.Policy)
	if err != nil { // without a policy, nobody has a role
		policy, tools = new(approvers.Policy), new(agent.Registry)
	}
	// The workflow logs nothing, because the command prints the lost records.
	wf := workflow.New(workflow.Config{Store: db, Policy: func() *approvers.Policy { return policy }, Tools: tools, Log: slog.New(slog.DiscardHandler)})
	unseen, err := s.close(ctx, wf, db, lost)
	if err != nil {
		return err
	}
	var keys auditcmd.TrustedKeys
	if err := keys.TrustFile(s.fromAudit.Key); err != nil {
		return err
	}
	report, err := audit.Verify(ctx, db, audit.VerifyOptions{Keys: keys.Keys, Own: keys.Own, Guard: bolt.Guard})
	if err != nil {
		return err
	}
	heads := s.toAudit.Heads
	if older != nil {
		s.toAudit.Heads = "" // carry does not copy the heads, because with these heads the bot would refuse to start
	}
	if err := s.carry(); err != nil {
		return err
	}
	if err := s.fill(ctx, func(f store.Filling) error { return s.copyRows(ctx, db, f) }); err != nil {
		return err
	}
	s.tell(lost, report.Faults())
	s.printPath("The key that signs the history is", s.fromAudit.Key, s.toAudit.Key)
	switch {
	case older == nil:
		s.printPath("The signed heads are", s.fromAudit.Heads, s.toAudit.Heads)
	case heads == s.fromAudit.Heads:
		if err := headsAside(s.Out, heads, ""); err != nil {
			return err
		}
	default:
		fmt.Fprintf(s.Out, "The new store lacks some of the signed heads in %s: keep that file, it proves what was there\n", s.fromAudit.Heads)
	}
	printUnseen(s.Out, unseen)
	fmt.Fprintf(s.Out, "Everything open in it is closed. Start the bot with COUNTERSIGN_STORE set to %s; people are then told. Have them check what happened. Never start a bot on %s again.\n", s.to, s.from)
	return nil
}

// close closes all records that could cause an action or that belong to lost records.
func (s *salvage) close(ctx context.Context, wf *workflow.Workflow, db *bolt.Store, lost []store.Damage) (unseen []approvers.Execution, err error) {
	x := workflow.Restoration{Who: cli.Operator(os.Geteuid()), Backup: filepath.Base(s.from.String())}
	err = audit.EachChain(ctx, db, func(chain []approvers.AuditRecord) error {
		for _, r := range chain {
			if r.At.After(x.Taken) {
				x.Taken = r.At
			}
		}
		return nil
	})
	var left audit.Unread
	if err := left.Take(err); err != nil {
		return nil, err
	}
	if err := wf.History.Salvaged(ctx, x, lost); err != nil {
		return nil, fmt.Errorf("the open requests and runs in it can't be closed: %w", err)
	}
	return wf.Views.Unseen(ctx)
}

// follows describes, for each bucket, the consequences of a lost row.
var follows = map[string]string{
	"requests": "it is voided, or was run: its history says which", "executions": "it does not run; if it had begun, its outcome is unknown",
	"calls": "it did not run and ended, or its outcome is unknown: its history says which",
	"turns": "it has stopped", "conversations": "it has begun anew", "messages": "the model gets the conversation without it", "grants": "it has ended", "absences": "it is over",
	"inbox": "it is not handled", "surfaces": "the bot does not treat the message in Slack as its own", "outbox_messages": "the bot does not treat the message in Slack as its own",
	"audit": "the history records that it was lost", "audit_payloads": "the text of this record is gone; the history records that", "elicitations": "the question has ended",
	"files": "the file is gone", "file_data": "the file is gone", "renderings": "what the card showed is only in the history", "tallies": "limits and budgets count without it",
	"timers": "nothing waits for it", "settings": "it is as in a new store; everything is paused if it said whether it is", "set_aside": "it was out of use",
}

// tell lists the missing records.
func (s *salvage) tell(lost []store.Damage, faults int) {
	for _, x := range lost {
		line := x.String()
		if text := follows[x.Bucket]; text != "" && x.Key != "" {
			line += ": " + text
		}
		fmt.Fprintln(s.Out, visible.Line(line))
	}
	fmt.Fprintf(s.Out, "%s has everything that can be read of %s. Missing: %s\n", s.to, s.from, cli.Count(len(lost), "thing"))
	if faults > 0 {
		fmt.Fprintf(s.Out, "The history has %s that are not from the damage alone: see countersign audit verify\n", cli.Count(faults, "fault"))
	}
}
