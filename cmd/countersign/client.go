package main

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"regexp"
	"strings"

	"github.com/goccy/go-yaml"
	"github.com/spf13/cobra"

	"countersign/approvers/workflow"
	"countersign/cmd/countersign/cli"
	"countersign/cmd/countersign/task"
)

func clientCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "client",
		Short: "Tokens and webhooks of other agents that ask about their tool calls",
		Args:  cli.NoArgs,
		RunE:  func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(clientAddCommand(), clientResumeCommand())
	return cmd
}

// clientName matches the names that the policy allows.
var clientName = regexp.MustCompile(`^[A-Za-z0-9_-]{1,64}$`)

func clientAddCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "add NAME",
		Short: "Creates a token for another agent, and prints it once",
		Long: `Creates a random token for a client, and prints it with the lines for the policy file. The policy has only the token's
SHA-256, so the token can't be shown again. Nothing is changed: write the lines into the policy file yourself, with the
agent, the owner and the tools of the client. To replace a token, put the new hash in the place of the old one.`,
		Example: "  countersign client add ci",
		Args:    cli.Args(1, 1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if !clientName.MatchString(args[0]) {
				return cli.Misused("%q is not a valid name for a client: a name has 1 to 64 letters, digits, _ and -", args[0])
			}
			printClient(cmd.OutOrStdout(), args[0], newToken())
			return nil
		},
	}
}

func clientResumeCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "resume NAME",
		Short: "Switches a client's webhook on after it failed",
		Long: `Switches the webhook of a client on, after it was switched off because the receiver answered 410 or nothing was
delivered for three days. If it only waits after failures, it is tried at once.`,
		Example: "  countersign client resume ci",
		Args:    cli.Args(1, 1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return clientResumeTask.Do(cmd.Context(), args[0], nil, cmd.OutOrStdout())
		},
	}
}

var clientResumeTask = task.Task[string]{Name: "client resume", Run: func(ctx context.Context, w task.Env, name string) error {
	wf, err := w.Workflow()
	if err != nil {
		return err
	}
	switch err := wf.Callers.ResumeWebhook(ctx, name); {
	case errors.Is(err, workflow.ErrNoWebhook):
		return cli.AnswerNo("the policy has no webhook for a client %q", name)
	case errors.Is(err, workflow.ErrNotDue):
		return cli.AnswerNo("the webhook of %s works: its last delivery succeeded, or there was none", name)
	case err != nil:
		return cli.CouldNot("nothing can be changed now: %w", err)
	}
	fmt.Fprintf(w.Out, "The webhook of %s is on. Deliveries that wait are tried now.\n", name)
	return nil
}}

// tokenPrefix is the prefix of every token that countersign makes. The prefix helps people and secret scanners to
// recognise a token.
const tokenPrefix = "cs_"

func newToken() string {
	var b [32]byte
	rand.Read(b[:]) // crypto/rand never fails
	return tokenPrefix + base64.RawURLEncoding.EncodeToString(b[:])
}

// printClient prints a token, and the lines of the policy file that accept this token.
func printClient(out io.Writer, name, token string) {
	sum := sha256.Sum256([]byte(token))
	key := name
	if quoted, err := yaml.Marshal(name); err == nil { // YAML reads names such as 123 and true as other types
		key = strings.TrimSpace(string(quoted))
	}
	fmt.Fprintf(out, `The token of %s, which is shown only now:

  %s

In the policy file, with the agent, the owner and the tools that you choose:

clients:
  %s:
    token: "sha256:%s"
    agent: support
    owner: U0123ABCD
    tools: [issue_refund]
`, name, token, key, hex.EncodeToString(sum[:]))
}
