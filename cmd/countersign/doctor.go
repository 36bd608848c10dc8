package main

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"time"

	"github.com/spf13/cobra"

	"countersign/agent"
	"countersign/agent/catalog"
	"countersign/approvers/audit"
	"countersign/approvers/workflow/settings"
	"countersign/cmd/countersign/auditcmd"
	"countersign/cmd/countersign/cli"
	"countersign/cmd/countersign/doctor"
	"countersign/cmd/countersign/openstore"
	"countersign/cmd/countersign/task"
	"countersign/config"
	"countersign/store"
	"countersign/store/postgres"
)

func doctorCommand() *cobra.Command {
	var asJSON bool
	var address string
	cmd := &cobra.Command{
		Use:   "doctor",
		Short: "Shows what is missing in this set-up, and how to correct it",
		Long: `Asks Slack, the model, the store and the policy whether everything that serve needs is there, and prints what is
missing, with the page of Slack's settings on which to correct it. It changes nothing, never prints a token, and works
while serve runs. The model is asked one small question. The policy's MCP servers are started, and asked for their tools.

If Slack's requests arrive over HTTP, --url makes it send requests to the bot's public address, as Slack does.

Exit codes: 0 nothing is missing · 1 something is missing or wrong · 2 the environment or the policy can't be used, or
Slack or the model refuses a token · 3 Slack, the model, a tool server or the store can't be reached.`,
		Args: cli.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			d := &doctor.Doctor{
				URL: address, Tools: offlineTools, OpenStore: openForCheck, Excess: excessRights, Clock: compareClocks, AskBot: askRunning,
				ReadBeside: readBeside, StoredToken: storedToken,
			}
			if !asJSON {
				d.Out = cmd.OutOrStdout()
			}
			d.Examine(cmd.Context())
			if asJSON {
				if err := d.WriteJSON(cmd.OutOrStdout()); err != nil {
					return err
				}
			}
			return d.Verdict()
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print the findings as JSON")
	cmd.Flags().StringVar(&address, "url", "", "over HTTP: the bot's public address, such as https://bot.example.com")
	return cmd
}

// offlineTools returns those tools of a policy that are known without contacting a source, and adds their properties to
// the policy.
func offlineTools(file *config.File, path string) (*agent.Registry, error) {
	tools, err := catalog.Offline(file, path)
	if err != nil {
		return nil, err
	}
	file.Policy = catalog.WithTools(file.Policy, tools)
	return tools, nil
}

// openForCheck opens the store for the doctor.
func openForCheck(ctx context.Context, env config.Env) (doctor.Store, error) {
	return openstore.ToRead(ctx, env)
}

// excessRights lists the unnecessary rights of the database role with which the bot connects (what), and says how to
// revoke them (do).
func excessRights(ctx context.Context, env config.Env) (what, do string, err error) {
	r, err := postgres.ReadRights(ctx, env.Store.URL.Reveal())
	if err := cmp.Or(err, r.Missing()); err != nil {
		return "", "", openstore.DatabaseError(err)
	}
	return r.Excess(), r.Remedy(), nil
}

// compareClocks says how far this machine's clock is from the database's (what), if that is too far.
func compareClocks(ctx context.Context, env config.Env) (what, do string, err error) {
	offset, err := postgres.ReadOffset(ctx, env.Store.URL.Reveal())
	if err != nil {
		return "", "", openstore.DatabaseError(err)
	}
	what, do = postgres.ClocksApart(offset)
	return what, do, nil
}

// askRunning asks the running bot for its version, and for the features that Slack refuses in its workspace.
func askRunning(ctx context.Context, env config.Env) (doctor.Running, error) {
	answer, err := askBot(ctx, env)
	return doctor.Running{Version: answer.Version, Refused: answer.Refused, Owner: answer.Owner}, err
}

// doctorAnswer is the answer of the running bot.
type doctorAnswer struct {
	Version string                `json:"version"` // the version of the bot's program; an older program does not send it
	Refused []settings.Refusal    `json:"refused"` // the features that Slack refuses in the bot's workspace
	Owner   settings.Installation `json:"owner"`   // the installation of the Slack app to which the store belongs
	Token   settings.SlackToken   `json:"token"`   // the encrypted bot token of an app with token rotation
}

func askBot(ctx context.Context, env config.Env) (answer doctorAnswer, err error) {
	var out bytes.Buffer
	if err := doctorTask.Ask(ctx, env, task.None{}, nil, &out); err != nil {
		return answer, err
	}
	if err := json.Unmarshal(out.Bytes(), &answer); err != nil {
		return answer, cli.CouldNot("the bot's answer can't be read: %w", err)
	}
	return answer, nil
}

// storedToken reads the bot token of an app with token rotation from the store, or from the running bot.
func storedToken(ctx context.Context, env config.Env) (token string, issued, expires time.Time, err error) {
	row, err := tokenRow(ctx, env)
	if err != nil {
		return "", issued, expires, err
	}
	token, err = appOf(env).BotToken(row)
	return token, row.Issued, row.Expires, err
}

func tokenRow(ctx context.Context, env config.Env) (row settings.SlackToken, err error) {
	var db openstore.Store
	if env.Store.Backend == config.Postgres {
		db, err = openstore.Database(ctx, env.Store, postgres.Options{}, true)
	} else {
		if _, err := os.Stat(env.Store.Path); errors.Is(err, fs.ErrNotExist) {
			return row, nil
		}
		db, err = openstore.ToRead(ctx, env)
	}
	if errors.Is(err, store.ErrLocked) {
		answer, err := askBot(ctx, env)
		return answer.Token, err
	}
	if err != nil {
		return row, err
	}
	return row, errors.Join(db.View(ctx, func(r store.Reader) (err error) {
		row, _, err = settings.ReadSlackToken(r)
		return err
	}), db.Close())
}

// readBeside reads a database that replicas are using.
func readBeside(ctx context.Context, env config.Env) (found doctor.Running, err error) {
	db, err := openstore.Database(ctx, env.Store, postgres.Options{}, true)
	if err != nil {
		return found, err
	}
	older, err := audit.FindOlder(ctx, env.Store.Path, env.Audit.Heads, db)
	if err == nil && older != nil {
		err = &cli.Error{Code: cli.ExitNo, Err: older}
	}
	if err == nil {
		err = auditcmd.KeyError(audit.CheckKeyFile(ctx, env.Audit.Key, db))
	}
	if err == nil {
		found, err = doctor.ReadStore(ctx, db)
	}
	return found, errors.Join(err, db.Close())
}

// doctorTask confirms that the running bot can read its store. doctorTask writes a doctorAnswer as JSON.
var doctorTask = task.Task[task.None]{Name: "doctor", WhileHeld: true, Run: func(ctx context.Context, w task.Env, _ task.None) error {
	answer := doctorAnswer{Version: version()}
	err := w.Store.View(ctx, func(r store.Reader) (err error) {
		if answer.Refused, _, err = settings.ReadRefusals(r); err != nil {
			return err
		}
		if answer.Owner, _, err = settings.ReadInstallation(r); err != nil {
			return err
		}
		answer.Token, _, err = settings.ReadSlackToken(r)
		return err
	})
	if err != nil {
		return err
	}
	older, err := w.Older(ctx)
	if err != nil {
		return err
	}
	if older != nil {
		return cli.CouldNot("the bot is held: %w", older)
	}
	return json.NewEncoder(w.Out).Encode(answer)
}}
