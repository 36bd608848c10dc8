// Command countersign is a Slack bot with an AI agent. The agent's risky tool calls wait until the right people
// countersign them.
//
// The commands are in these files:
//
//	serve               serve.go: opens everything; run.go: wires and runs the parts; hold.go: a bot that must not start
//	check, explain      package policycmd; calls.go: the calls of the history, for check --replay and explain --observed
//	doctor, manifest    doctor.go, manifest.go: setting up Slack
//	tools               package policycmd
//	pending, decide     pending.go, undelivered.go, decide.go
//	report              report.go: the outcome of a run
//	pause, resume       pause.go
//	audit               package auditcmd; audit accept-loss: package storecmd
//	backup, restore     package storecmd
//	store               package storecmd
//	client              client.go: tokens of the gateway's clients
//	gateway             gateway.go: MCP over standard input and output
//	hook                package hookcmd: hooks of coding agents
//	health, version     health.go, version.go; man (hidden: manual pages) in root.go
//	demo                demo.go, demo_hint.go; demo_env.go: the services around the bot; demo_play.go: --play
//	workspace, shop     workspace.go, shop.go: parts of the demo, each alone
//
// root.go has the command tree and the usage errors. Several commands share these packages:
//
//	policyfile          reads and watches the policy file
//	openstore           opens the store
//	task                work on the store, by the command or by the running bot
//
// A running bot uses package metrics, and these files:
//
//	admin.go            /healthz, /readyz
//	control.go          runs the tasks of commands
//	seal.go             the key and the destinations of the signed heads
//	compact.go          compacts the store at the start
//	notify.go           reports to systemd
//	secrets.go          reads new secrets
//	store_watch.go      detects stalls and damage
//	retain.go           deletes old records and conversations
//	crashes.go          records the work during which a process died
//	garbage.go          sets the garbage collection
//	traces.go           makes spans from events
package main

import (
	"context"
	"errors"
	"fmt"
	"log"
	"log/slog"
	"os"
	"os/signal"
	"syscall"

	"countersign/cmd/countersign/cli"
	"countersign/config"
	"countersign/internal/redact"
)

func main() { os.Exit(execute()) }

// execute runs the command of the process's arguments, and returns the exit code.
func execute() int {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	context.AfterFunc(ctx, stop) // a second signal ends the process immediately
	out := &cli.Output{W: os.Stdout}
	withoutSecrets()
	cmd := root()
	cmd.SetOut(out)
	err := cmd.ExecuteContext(ctx)
	if err == nil && out.Err != nil {
		err = cli.CouldNot("the output can't be written: %w", out.Err)
	}
	if logged := new(loggedError); err != nil && !errors.As(err, &logged) {
		fmt.Fprintln(os.Stderr, "countersign:", redact.Error(err))
	}
	return cli.Code(err)
}

// logger returns the process's logger. In each line, the logger masks the secrets of the environment and everything
// that looks like a secret. If no format is set, the logger writes text to a terminal and JSON to everything else.
func logger(level slog.Leveler, format string) *slog.Logger {
	o := &slog.HandlerOptions{Level: level, ReplaceAttr: withoutEmpty}
	if format == config.JSONLog || format == "" && !cli.IsTerminal(os.Stderr) {
		o.ReplaceAttr = inJSON
		return slog.New(slog.NewJSONHandler(redact.Writer(cli.Stderr), o))
	}
	return slog.New(slog.NewTextHandler(redact.Writer(cli.Stderr), o))
}

// loggedError is an error that is already in the last line of the log. loggedError must not be printed as text too,
// because a reader of a JSON log can't parse a line of text.
type loggedError struct{ error }

func (e *loggedError) Unwrap() error { return e.error }

// If the log has the JSON format, logError logs the error that ends the program.
func logError(err error, log *slog.Logger) error {
	if _, isJSON := log.Handler().(*slog.JSONHandler); err == nil || !isJSON {
		return err
	}
	log.Error("countersign ends", "error", redact.Error(err), "exit_code", cli.Code(err))
	return &loggedError{err}
}

// withoutEmpty leaves out attributes without a value, such as the request of a call that needed no approval.
func withoutEmpty(_ []string, a slog.Attr) slog.Attr {
	if a.Value.Kind() == slog.KindString && a.Value.String() == "" {
		return slog.Attr{}
	}
	return a
}

// inJSON is like withoutEmpty, and writes durations in seconds, because a JSON number has no unit.
func inJSON(groups []string, a slog.Attr) slog.Attr {
	if a.Value.Kind() == slog.KindDuration {
		a.Value = slog.Float64Value(a.Value.Duration().Seconds())
	}
	return withoutEmpty(groups, a)
}

// logEverything also sends the log lines of libraries to the logger.
func logEverything(log *slog.Logger) {
	slog.SetLogLoggerLevel(slog.LevelWarn) // libraries use package log for faults
	slog.SetDefault(log)
}

// withoutSecrets masks the environment's secrets in the log, in the last error message, and in the lines that libraries
// log.
func withoutSecrets() {
	redact.Environ(os.Environ())
	log.SetOutput(redact.Writer(cli.Stderr))
}
