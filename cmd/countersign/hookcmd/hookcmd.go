// Package hookcmd has the commands "countersign hook …". The program countersign-hook has only these commands, and
// therefore starts faster. The package imports little, because a coding agent starts the program for each tool call.
package hookcmd

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"countersign/agent/client"
	"countersign/agent/hook"
	"countersign/agent/hook/setup"
	"countersign/cmd/countersign/cli"
)

// Command returns the command tree. An agent's settings contain the command line of each hook. This command line begins
// with the path of the program and the words in the parameter program: "hook" for countersign, and no words for
// countersign-hook.
func Command(program ...string) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "hook",
		Short: "Lets a coding agent's tool calls wait for the same people",
		Long: `Answers the hooks of coding agents: the call waits until the right people have decided it in Slack. "hook install"
writes the agent's settings; after that, the agent starts "hook AGENT" for each call.

The address of the gateway and the file with the token are read from ~/.config/countersign/hook.json (or the file that
COUNTERSIGN_HOOK_CONFIG names), and from COUNTERSIGN_HOOK_ADDRESS and COUNTERSIGN_HOOK_TOKEN_FILE:

  {"address": "https://countersign.example.com", "token_file": "hook.token"}`,
		Args: cli.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	for _, a := range hook.Agents() {
		cmd.AddCommand(agentCommand(a, program))
	}
	cmd.AddCommand(installCommand(program), uninstallCommand(), doctorCommand(), policyCommand(), answerCommand())
	return cmd
}

// exit ends the process with the exit code of a hook's answer. Tests replace exit.
var exit = os.Exit

// agentCommand answers one event. If the hook could handle the event, the exit code is 0, and the output has the
// answer. Otherwise the exit code is 2, and agents treat 2 as a denial.
func agentCommand(a hook.Agent, program []string) *cobra.Command {
	var timeout time.Duration
	use, example, arguments := a.Name, "  countersign hook "+a.Name+" < event.json", cobra.PositionalArgs(cli.NoArgs)
	if a.Name == "copilot" { // its events do not contain their own name
		use, example, arguments = a.Name+" EVENT", "  countersign hook copilot preToolUse < event.json", cli.Args(1, 1)
	}
	cmd := &cobra.Command{
		Use:     use,
		Short:   "Answers one event of " + a.Title + "; its settings run this",
		Example: example,
		Args:    arguments,
		RunE: func(cmd *cobra.Command, args []string) error {
			ctx, stop := signal.NotifyContext(cmd.Context(), os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
			defer stop()
			o := hook.Options{Agent: a.Name, Timeout: timeout, Input: cmd.InOrStdin(), Getenv: os.Getenv}
			if len(args) == 1 {
				o.Event = args[0]
			}
			if path, err := os.Executable(); err == nil {
				o.Program = append([]string{path}, program...)
			}
			answer := hook.Run(ctx, o)
			if answer.Err != "" {
				fmt.Fprintln(cmd.ErrOrStderr(), answer.Err)
			}
			if _, err := cmd.OutOrStdout().Write(answer.Out); err != nil {
				answer.Code = cli.ExitUsage // the agent did not get the answer, so it must deny the call
			}
			if answer.Code != cli.ExitDone {
				exit(answer.Code)
			}
			return nil
		},
	}
	// Agents treat the exit code of Misused as a denial.
	cmd.SetFlagErrorFunc(func(_ *cobra.Command, err error) error { return cli.Misused("%w", err) })
	cmd.Flags().DurationVar(&timeout, "timeout", 0, "the agent's limit of this hook, as its settings say it; the answer comes 15s earlier")
	return cmd
}

// place has the flags that select the settings of an agent.
type place struct {
	scope, file string
	yes         bool
}

func (p *place) flags(cmd *cobra.Command) {
	cmd.Flags().StringVar(&p.scope, "scope", "user", "whose settings: user, or project for those in this folder")
	cmd.Flags().StringVar(&p.file, "file", "", "another settings file, such as Claude Code's managed settings")
	cli.PathFlags(cmd.Flags(), "file")
	cmd.Flags().BoolVar(&p.yes, "yes", false, "don't ask")
}

// machine returns the machine on which this process runs.
func machine() (setup.Machine, error) {
	home, err := os.UserHomeDir()
	if err != nil {
		return setup.Machine{}, cli.CouldNot("the home folder is not known: %w", err)
	}
	folder, err := os.Getwd()
	if err != nil {
		return setup.Machine{}, cli.CouldNot("the current folder is not known: %w", err)
	}
	return setup.Machine{Home: home, Folder: folder, Getenv: os.Getenv}, nil
}

// target finds the settings of an agent.
func (p *place) target(name string) (setup.Target, error) {
	a, ok := hook.Find(name)
	if !ok {
		return setup.Target{}, cli.Misused("%q is not an agent whose hooks are known; choose one of %s", name, names())
	}
	m, err := machine()
	if err != nil {
		return setup.Target{}, err
	}
	t, err := setup.NewTarget(a, setup.Scope(p.scope), m.Home, m.Folder, m.Getenv)
	if err != nil {
		return t, cli.Misused("%w", err)
	}
	if p.file != "" {
		t.Path = p.file
	}
	return t, nil
}

func names() string {
	var list []string
	for _, a := range hook.Agents() {
		list = append(list, a.Name)
	}
	return strings.Join(list, ", ")
}

func installCommand(program []string) *cobra.Command {
	var p place
	var profile, gateway, variable string
	var timeout time.Duration
	cmd := &cobra.Command{
		Use:   "install AGENT",
		Short: "Adds the hooks to a coding agent's settings",
		Long: `Shows the change of the settings, and asks before it makes it. A copy of the settings stays beside them. Everything else
in the file stays as it is. "hook uninstall" undoes it.

The profile control asks other people about each call, and denies whatever fails. The profile comfort answers the
agent's own permission dialog from the phone of the person who works with it; whatever fails, the dialog asks.

With --http, the agent sends its events to the gateway itself, so its machine needs no program of Countersign. The agent
reads the token from an environment variable. Only Claude Code can do this safely.`,
		Example: "  countersign hook install claude-code\n  countersign hook install claude-code --http https://countersign.example.com",
		Args:    cli.Args(1, 1),
		RunE: func(cmd *cobra.Command, args []string) error {
			t, err := p.target(args[0])
			if err != nil {
				return err
			}
			path, err := programPath()
			if err != nil {
				return cli.CouldNot("the path of this program is not known: %w", err)
			}
			t.Profile, t.Timeout, t.Program = hook.Profile(profile), timeout, append([]string{path}, program...)
			t.Gateway, t.Variable = gateway, variable
			if t.Profile != hook.Control && t.Profile != hook.Comfort {
				return cli.Misused("the profile %q is neither control nor comfort", profile)
			}
			c, err := t.Install()
			if err != nil {
				return cli.Misused("%w", err)
			}
			if err := apply(cmd, c, p.yes, "The hooks are there already."); err != nil {
				return err
			}
			if t.Gateway != "" && !c.Empty() {
				fmt.Fprintf(cmd.OutOrStdout(), "Start %s with the token in the variable %s. Without the token, every call is denied.\n", t.Agent.Title, t.Variable)
			}
			if t.Agent.Name == "codex" && !c.Empty() {
				fmt.Fprintln(cmd.OutOrStdout(), "Open Codex, run /hooks, and trust the hooks. Until then it runs calls without them.")
			}
			return nil
		},
	}
	p.flags(cmd)
	cmd.Flags().StringVar(&profile, "profile", string(hook.Control), "control: other people decide; comfort: the person who works with the agent decides")
	cmd.Flags().DurationVar(&timeout, "timeout", setup.DefaultTimeout, "how long a call may wait, from 1m to 24h")
	cmd.Flags().StringVar(&gateway, "http", "", "address of the gateway: the agent sends its events there, and needs no program")
	cmd.Flags().StringVar(&variable, "token-variable", setup.DefaultVariable, "with --http: the environment variable with the token")
	return cmd
}

// programPath returns the path under which this program was started. If this path is a link, it is better for settings
// than the path of the file, because the link usually leads to the new file after an upgrade.
func programPath() (string, error) {
	path, err := os.Executable() // on Linux, this is the path of the file
	if err != nil {
		return "", err
	}
	file, err := os.Stat(path)
	if err != nil {
		return "", err
	}
	if started, err := exec.LookPath(os.Args[0]); err == nil {
		if other, err := os.Stat(started); err == nil && os.SameFile(file, other) {
			return filepath.Abs(started)
		}
	}
	return filepath.EvalSymlinks(path)
}

func uninstallCommand() *cobra.Command {
	var p place
	cmd := &cobra.Command{
		Use:     "uninstall AGENT",
		Short:   "Removes the hooks from a coding agent's settings",
		Example: "  countersign hook uninstall claude-code",
		Args:    cli.Args(1, 1),
		RunE: func(cmd *cobra.Command, args []string) error {
			t, err := p.target(args[0])
			if err != nil {
				return err
			}
			c, err := t.Uninstall()
			if err != nil {
				return cli.Misused("%w", err)
			}
			return apply(cmd, c, p.yes, "There are no hooks of Countersign.")
		},
	}
	p.flags(cmd)
	return cmd
}

// apply shows a change and makes it. If the parameter yes is false, apply first asks for confirmation.
func apply(cmd *cobra.Command, c setup.Change, yes bool, nothing string) error {
	out := cmd.OutOrStdout()
	if c.Empty() {
		fmt.Fprintln(out, nothing)
		return nil
	}
	fmt.Fprint(out, c.Diff())
	if !yes {
		fmt.Fprint(out, "Make this change? [y/N] ")
		line, err := bufio.NewReader(cmd.InOrStdin()).ReadString('\n')
		if err != nil && err != io.EOF {
			return cli.CouldNot("the answer can't be read: %w", err)
		}
		if answer := strings.ToLower(strings.TrimSpace(line)); answer != "y" && answer != "yes" {
			return cli.AnswerNo("nothing was changed")
		}
	}
	if err := c.Apply(); err != nil {
		return cli.CouldNot("%w", err)
	}
	fmt.Fprintf(out, "Wrote %s.\n", c.Path)
	return nil
}

func doctorCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "doctor [AGENT]",
		Short: "Finds settings that let a coding agent's calls run without approval",
		Long: `Examines the settings of the agents for the user and for this folder, and asks the gateway whether it knows the token.
If Claude Code has hooks, runs "claude --version", because old versions don't know all events of the hooks.

Exit codes: 0 nothing is wrong · 1 something is wrong`,
		Example: "  countersign hook doctor claude-code",
		Args:    cli.Args(0, 1),
		RunE: func(cmd *cobra.Command, args []string) error {
			m, err := machine()
			if err != nil {
				return err
			}
			agents := hook.Agents()
			if len(args) == 1 {
				a, ok := hook.Find(args[0])
				if !ok {
					return cli.Misused("%q is not an agent whose hooks are known; choose one of %s", args[0], names())
				}
				agents = []hook.Agent{a}
			}
			ctx, cancel := context.WithTimeout(cmd.Context(), time.Minute)
			defer cancel()
			wrong := print(cmd.OutOrStdout(), "Gateway", m.Reach(ctx))
			some := false
			for _, a := range agents {
				list, installed := m.Examine(ctx, a)
				if !installed && len(args) == 0 {
					continue
				}
				some = true
				if !installed {
					list = append(list, setup.Finding{State: setup.Fail, What: "there are no hooks of Countersign", Do: "run: countersign hook install " + a.Name})
				}
				if f, ok := m.ProfileMismatch(a); ok {
					list = append(list, f)
				}
				wrong += print(cmd.OutOrStdout(), a.Title, list)
			}
			if !some {
				fmt.Fprintln(cmd.OutOrStdout(), "No agent has hooks of Countersign. Run: countersign hook install AGENT")
			}
			if wrong > 0 {
				return cli.AnswerNo("%s", cli.Count(wrong, "problem"))
			}
			return nil
		},
	}
	return cmd
}

// print prints findings, and returns how many of them have the state Fail.
func print(w io.Writer, topic string, list []setup.Finding) int {
	fmt.Fprintln(w, topic)
	wrong := 0
	for _, f := range list {
		fmt.Fprintf(w, "  %-4s  %s\n", f.State, f.What)
		if f.Do != "" {
			fmt.Fprintf(w, "        %s\n", f.Do)
		}
		if f.State == setup.Fail {
			wrong++
		}
	}
	fmt.Fprintln(w)
	return wrong
}

func policyCommand() *cobra.Command {
	return &cobra.Command{
		Use:     "policy AGENT",
		Short:   "Prints the tools of a coding agent for the policy file, with risks and previews",
		Example: "  countersign hook policy claude-code",
		Args:    cli.Args(1, 1),
		RunE: func(cmd *cobra.Command, args []string) error {
			a, ok := hook.Find(args[0])
			if !ok {
				return cli.Misused("%q is not an agent whose hooks are known; choose one of %s", args[0], names())
			}
			text, err := setup.Policy(a)
			if err != nil {
				return cli.CouldNot("%w", err)
			}
			fmt.Fprint(cmd.OutOrStdout(), text)
			return nil
		},
	}
}

func answerCommand() *cobra.Command {
	return &cobra.Command{
		Use:     "answer REQUEST QUESTION TEXT",
		Short:   "Answers an approver's question about a call that waits",
		Example: "  countersign hook answer req_01 0 'The release is tonight.'",
		Args:    cli.Args(3, 3),
		RunE: func(cmd *cobra.Command, args []string) error {
			number, err := strconv.Atoi(args[1])
			if err != nil || number < 0 {
				return cli.Misused("the question's number is %q; write it as the denial did", args[1])
			}
			c, err := hook.ReadConfig(os.Getenv)
			if err != nil {
				return cli.Misused("%w", err)
			}
			gate, err := client.New(c.Address, c.Token)
			if err != nil {
				return cli.Misused("%w", err)
			}
			if _, err := gate.Answer(cmd.Context(), args[0], number, args[2]); err != nil {
				return cli.CouldNot("%w", err)
			}
			fmt.Fprintln(cmd.OutOrStdout(), "Answered. Repeat the identical call to continue waiting.")
			return nil
		},
	}
}
