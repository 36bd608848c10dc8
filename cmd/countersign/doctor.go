package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"

	"countersign/approvers"
	"countersign/config"
	"countersign/internal/redact"
)

func doctorCommand() *cobra.Command {
	var asJSON bool
	var address string
	cmd := &cobra.Command{
		Use:   "doctor",
		Short: "What is missing in this set-up, and where to mend it",
		Long: `Asks Slack, the model, the store and the policy whether everything that serve needs is there, and prints what is
missing, with the page of Slack's settings on which to mend it. It changes nothing, never prints a token, and works
while serve runs. The model is asked one small question.

Where Slack's requests come in over HTTP, --url has it ask at the bot's public address, as Slack does.

Exit codes: 0 nothing is missing · 1 something is, or is wrong · 2 the environment or the policy can't be used, or
Slack or the model refuses a token · 3 Slack, the model or the store can't be reached.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			d := &doctor{url: address}
			if !asJSON {
				d.out = cmd.OutOrStdout()
			}
			d.examine(cmd.Context())
			if asJSON {
				if err := d.writeJSON(cmd.OutOrStdout()); err != nil {
					return err
				}
			}
			return d.verdict()
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print the findings as JSON")
	cmd.Flags().StringVar(&address, "url", "", "over HTTP: the bot's public address, such as https://bot.example.com")
	return cmd
}

// state says how bad something is.
type state string

// The states of findings.
const (
	stateOK   state = "ok"
	stateWarn state = "warn" // it works, and is worth a look
	stateFail state = "fail" // something does not work
)

// diagnosis is one thing that was looked at.
type diagnosis struct {
	Topic string `json:"topic"`
	State state  `json:"state"`
	What  string `json:"what"`
	Do    string `json:"do,omitempty"` // what to do about it
	code  int    // the exit code, of one that fails
}

// doctor looks at everything that serve needs.
type doctor struct {
	out      io.Writer // nil: nothing is printed meanwhile
	url      string    // the bot's public address; empty: unknown
	topic    string
	findings []diagnosis
}

// examinationTime bounds all of it: other programs may be using up Slack's limits.
const examinationTime = 5 * time.Minute

func (d *doctor) examine(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, examinationTime)
	defer cancel()
	env := d.environment()
	policy := d.policy(env.Policy)
	if env.BotToken != "" {
		d.slack(ctx, env, policy)
	}
	if env.Model != "" {
		d.model(ctx, env, policy)
	}
	if env.Store.Path != "" {
		d.store(ctx, env)
	}
}

// environment looks at the variables. What is wrong of them is left empty.
func (d *doctor) environment() config.Env {
	d.begin("Environment")
	env, err := config.ReadEnv(config.Serve)
	var wrong config.Problems
	if err != nil && !errors.As(err, &wrong) {
		d.fail(exitUsage, err.Error(), "")
		return env
	}
	for _, p := range wrong {
		if p.Severity == config.Warning {
			d.warn(p.Variable+" "+p.Message, p.Hint)
			continue
		}
		d.fail(exitUsage, p.Variable+" "+p.Message, p.Hint)
	}
	if len(wrong.Errors()) == 0 {
		d.ok("every variable that serve needs is set (%s)", env.Transport)
	}
	return env
}

// policy looks at the policy file; nil where it can't be used.
func (d *doctor) policy(path string) *approvers.Policy {
	d.begin("Policy")
	file, err := config.ReadPolicy(path)
	var broken config.Problems
	switch {
	case errors.As(err, &broken):
		d.fail(exitUsage, fmt.Sprintf("%s can't be used: %s", path, count(len(broken.Errors()), "error")), "run countersign check: it says where, and what to write instead")
		return nil
	case err != nil:
		d.fail(exitUsage, err.Error(), "")
		return nil
	}
	tools, err := offline(file, path)
	if err != nil {
		for _, problem := range problemsIn(err) {
			d.fail(exitUsage, problem.Error(), "")
		}
		return nil
	}
	withTools(file, tools)
	found := file.Check(described(tools))
	for _, p := range found {
		warning := p.Severity == config.Warning
		p.Severity = config.Error // the line begins with what it is
		if warning {
			d.warn(p.Error(), "")
			continue
		}
		d.fail(exitNo, p.Error(), "")
	}
	if len(found.Errors()) == 0 {
		d.ok("%s can be used: %s, %s", path, count(len(file.Policy.Approvers), "approver"), count(len(file.Policy.Agents), "agent"))
	}
	return file.Policy
}

func (d *doctor) begin(topic string) {
	d.topic = topic
	if d.out != nil {
		if len(d.findings) > 0 {
			fmt.Fprintln(d.out)
		}
		fmt.Fprintln(d.out, topic)
	}
}

func (d *doctor) ok(format string, args ...any) {
	d.add(diagnosis{State: stateOK, What: fmt.Sprintf(format, args...)})
}
func (d *doctor) warn(what, do string) { d.add(diagnosis{State: stateWarn, What: what, Do: do}) }
func (d *doctor) fail(code int, what, do string) {
	d.add(diagnosis{State: stateFail, What: what, Do: do, code: code})
}

func (d *doctor) add(f diagnosis) {
	f.Topic, f.What, f.Do = d.topic, onOneLine(redact.Text(f.What)), onOneLine(f.Do)
	d.findings = append(d.findings, f)
	if d.out == nil {
		return
	}
	label := map[state]string{stateOK: "OK  ", stateWarn: "WARN", stateFail: "FAIL"}[f.State]
	writeWrapped(d.out, "  "+label+"  ", f.What)
	if f.Do != "" {
		writeWrapped(d.out, "        → ", f.Do)
	}
}

// verdict is the command's error: the sentence that ends it, with the exit code of the worst of it.
func (d *doctor) verdict() error {
	fails, warns, code := 0, 0, 0
	for _, f := range d.findings {
		switch f.State {
		case stateFail:
			fails++
			code = max(code, f.code)
		case stateWarn:
			warns++
		}
	}
	if fails > 0 {
		return &exitError{code, fmt.Errorf("%s to mend", count(fails, "finding"))}
	}
	if d.out != nil {
		fmt.Fprintln(d.out)
		if warns > 0 {
			fmt.Fprintf(d.out, "Nothing is missing; %s to look at.\n", count(warns, "warning"))
		} else {
			fmt.Fprintln(d.out, "Nothing is missing.")
		}
	}
	return nil
}

func (d *doctor) writeJSON(w io.Writer) error {
	enc := json.NewEncoder(w)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	return enc.Encode(struct {
		Findings []diagnosis `json:"findings"`
	}{d.findings})
}
