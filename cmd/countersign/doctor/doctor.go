package doctor

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"time"

	"countersign/agent"
	"countersign/agent/catalog"
	"countersign/agent/hook"
	"countersign/agent/hook/setup"
	"countersign/approvers"
	"countersign/approvers/workflow/settings"
	"countersign/cmd/countersign/cli"
	"countersign/config"
	"countersign/config/check"
	"countersign/config/yamldoc"
	"countersign/internal/redact"
	"countersign/internal/visible"
)

// state is the severity of a finding.
type state string

// The states of findings.
const (
	stateOK   state = "ok"
	stateWarn state = "warn" // the checked part works, but the operator should look at it
	stateFail state = "fail" // something does not work
)

// diagnosis is one finding.
type diagnosis struct {
	Topic string `json:"topic"`
	State state  `json:"state"`
	What  string `json:"what"`
	Do    string `json:"do,omitempty"` // what to do about it
	code  int    // the exit code of the command if this check fails
}

// Running is the answer of a running bot.
type Running struct {
	Version string                // the version of its program; empty: an older program, which does not report it
	Refused []settings.Refusal    // the features that Slack refuses in its workspace
	Owner   settings.Installation // the installation of the Slack app to which the store belongs
}

// Doctor checks everything that serve needs.
type Doctor struct {
	Out       io.Writer                                                     // nil: findings are not printed while the doctor works
	URL       string                                                        // the bot's public address; empty: unknown
	Tools     func(file *config.File, path string) (*agent.Registry, error) // reads a policy's tools, and asks no server
	OpenStore func(context.Context, config.Env) (Store, error)              // opens the store; store.ErrLocked: another process holds it
	// Excess lists the unnecessary rights of the database's role, and says how to revoke them. If there are no such
	// rights, the list is empty.
	Excess func(context.Context, config.Env) (what, do string, err error)
	// Clock compares this machine's clock with the database's. If they are too far apart, Clock says how far, and what to
	// do. Otherwise both are empty.
	Clock func(context.Context, config.Env) (what, do string, err error)
	// AskBot asks the running bot. An error means that the bot does not answer, can't read its store, or is held because
	// its store is old.
	AskBot func(ctx context.Context, env config.Env) (Running, error)
	// ReadBeside reads a database that replicas on other machines are using.
	ReadBeside func(ctx context.Context, env config.Env) (Running, error)

	// StoredToken returns the stored bot token of an app with token rotation. If there is none, the token is empty. If
	// the bot could not start with the stored tokens, the error wraps rotation.ErrRefused.
	StoredToken func(ctx context.Context, env config.Env) (token string, issued, expires time.Time, err error)

	app      settings.Installation // the installation that the bot token belongs to; zero: unknown
	topic    string
	findings []diagnosis
}

// examinationTime limits the whole examination. The time is long, because the doctor has to wait if other programs have
// used up Slack's rate limits.
const examinationTime = 5 * time.Minute

// Examine runs all checks for which the environment has the settings, and prints each finding to Out immediately.
func (d *Doctor) Examine(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, examinationTime)
	defer cancel()
	env := d.environment()
	policy, tools := d.policy(ctx, env.Policy)
	if env.BotToken != "" || env.Rotation.On() {
		d.slack(ctx, env, policy)
	}
	if env.Model != "" {
		d.model(ctx, env, policy, tools)
	}
	if env.Store.Path != "" {
		d.store(ctx, env)
		d.heads(ctx, env.Audit)
	}
	d.traces(ctx, env)
	d.gateway(ctx, env, policy)
	d.hooks(ctx)
}

// The method "hooks" checks the hooks of the coding agents on this machine.
func (d *Doctor) hooks(ctx context.Context) {
	home, _ := os.UserHomeDir() // empty: there are no settings
	folder, _ := os.Getwd()
	m := setup.Machine{Home: home, Folder: folder, Getenv: os.Getenv}
	for _, a := range hook.Agents() {
		found, _ := m.Examine(ctx, a)
		if len(found) == 0 {
			continue
		}
		d.begin("Hooks of " + a.Title)
		for _, f := range found {
			switch f.State {
			case setup.OK:
				d.ok("%s", f.What)
			case setup.Warn:
				d.warn(f.What, f.Do)
			default:
				d.fail(cli.ExitNo, f.What, f.Do)
			}
		}
	}
}

// environment checks the environment variables. environment returns the variables, with empty values in place of wrong
// values. An empty address stands for the address of Slack or OpenAI. So if an address is wrong, environment also
// removes the bot token or the model's name, and the doctor does not send secrets to a wrong place.
func (d *Doctor) environment() config.Env {
	d.begin("Environment")
	env, err := config.ReadEnv(config.Serve)
	var wrong yamldoc.Problems
	if err != nil && !errors.As(err, &wrong) {
		d.fail(cli.ExitUsage, err.Error(), "")
		return env
	}
	for _, p := range slices.Concat(wrong, env.Warnings) {
		if p.Severity == yamldoc.Warning {
			d.warn(p.Variable+" "+p.Message, p.Hint)
			continue
		}
		d.fail(cli.ExitUsage, p.Variable+" "+p.Message, p.Hint)
		switch p.Variable {
		case "OPENAI_BASE_URL":
			env.Model = ""
		case "SLACK_API_URL":
			env.BotToken, env.Rotation = "", config.Rotation{}
		}
	}
	if env.AdminAddr != "" && !onThisMachine(env.AdminAddr) {
		d.warn(env.AdminAddr+" can be reached from other machines, and everybody there can read the metrics and /readyz", "let only Prometheus and the health checks reach it, or listen at 127.0.0.1")
	}
	if len(wrong.Errors()) == 0 {
		d.ok("every variable that serve needs is set (%s)", env.Transport)
	}
	return env
}

// policy checks the policy file, and its tools. policy returns nil if the file or its tools can't be read.
func (d *Doctor) policy(ctx context.Context, path string) (*approvers.Policy, *agent.Registry) {
	d.begin("Policy")
	file, err := check.Read(path)
	var broken yamldoc.Problems
	switch {
	case errors.As(err, &broken):
		d.fail(cli.ExitUsage, fmt.Sprintf("%s can't be used: %s", path, cli.Count(len(broken.Errors()), "error")), "run countersign check: it says where, and what to write instead")
		return nil, nil
	case err != nil:
		d.fail(cli.ExitUsage, err.Error(), "")
		return nil, nil
	}
	tools, err := d.Tools(file, path)
	if err != nil {
		for _, problem := range cli.Problems(err) {
			d.fail(cli.ExitUsage, problem.Error(), "")
		}
		return nil, nil
	}
	found := check.Run(file, catalog.Described(tools))
	for _, p := range found {
		warning := p.Severity == yamldoc.Warning
		p.Severity = yamldoc.Error // keeps "warning" out of the text: the doctor prints the severity itself
		if warning {
			d.warn(p.Error(), "")
			continue
		}
		d.fail(cli.ExitNo, p.Error(), "")
	}
	if len(found.Errors()) == 0 {
		d.ok("%s can be used: %s, %s", path, cli.Count(len(file.Policy.Approvers), "approver"), cli.Count(len(file.Policy.Agents), "agent"))
	}
	d.tools(ctx, file, path)
	return file.Policy, tools
}

func (d *Doctor) begin(topic string) {
	d.topic = topic
	if d.Out != nil {
		if len(d.findings) > 0 {
			fmt.Fprintln(d.Out)
		}
		fmt.Fprintln(d.Out, topic)
	}
}

func (d *Doctor) ok(format string, args ...any) {
	d.add(diagnosis{State: stateOK, What: fmt.Sprintf(format, args...)})
}

func (d *Doctor) warn(what, do string) { d.add(diagnosis{State: stateWarn, What: what, Do: do}) }

func (d *Doctor) fail(code int, what, do string) {
	d.add(diagnosis{State: stateFail, What: what, Do: do, code: code})
}

func (d *Doctor) add(f diagnosis) {
	f.Topic, f.What, f.Do = d.topic, visible.Line(redact.Text(f.What)), visible.Line(f.Do)
	d.findings = append(d.findings, f)
	if d.Out == nil {
		return
	}
	label := map[state]string{stateOK: "OK  ", stateWarn: "WARN", stateFail: "FAIL"}[f.State]
	writeWrapped(d.Out, "  "+label+"  ", f.What)
	if f.Do != "" {
		writeWrapped(d.Out, "        → ", f.Do)
	}
}

// If no check failed, Verdict prints a summary. Otherwise, Verdict returns an error with the highest exit code of the
// failed checks.
func (d *Doctor) Verdict() error {
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
		return &cli.Error{Code: code, Err: fmt.Errorf("%s to fix", cli.Count(fails, "finding"))}
	}
	if d.Out != nil {
		fmt.Fprintln(d.Out)
		if warns > 0 {
			fmt.Fprintf(d.Out, "Nothing is missing; %s to look at.\n", cli.Count(warns, "warning"))
		} else {
			fmt.Fprintln(d.Out, "Nothing is missing.")
		}
	}
	return nil
}

// WriteJSON writes the findings.
func (d *Doctor) WriteJSON(w io.Writer) error {
	enc := json.NewEncoder(w)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	return enc.Encode(struct {
		Findings []diagnosis `json:"findings"`
	}{d.findings})
}
