package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"countersign/approvers"
	"countersign/approvers/workflow"
	"countersign/cmd/countersign/cli"
	"countersign/cmd/countersign/task"
	"countersign/internal/visible"
	"countersign/store"
)

// leastDigest is the minimum length of a digest's prefix, and shownDigest is the displayed length. Both are in hex
// digits: 12 digits are 48 bits, and 16 digits are 64 bits.
const (
	leastDigest = 12
	shownDigest = 16
)

type operatorDecision struct {
	Request string `json:"request"`
	Approve bool   `json:"approve"`
	Digest  string `json:"digest,omitempty"` // a prefix of the request's digest; only for an approval
	Reason  string `json:"reason"`
}

func decideCommand() *cobra.Command {
	var o operatorDecision
	cmd := &cobra.Command{
		Use:   "decide REQUEST approve|reject --reason …",
		Short: "Decides a request at the command line, without Slack",
		Long: `Rejects a request that waits, or stops one that was approved and has not run; or approves one in place of everybody who is asked, where the policy says
break_glass: true for its tool. Both are recorded as operator:LOGIN, your account on this machine, and shown on the cards.

An approval is for the arguments that you were shown: "countersign pending REQUEST" prints their digest, which you give with --digest. At a terminal you may leave
--digest out: then the arguments are shown, and you are asked. The approvers of every stage and their leads are told by direct message, with the reason.

Exit codes: 0 it is decided · 1 the request can't be decided like that · 2 wrong usage · 3 it could not be tried.`,
		Example: `  countersign decide req_7ABCDEFGHIJK reject --reason "not before the audit"
  countersign decide req_7ABCDEFGHIJK approve --digest 2f1b03c7aa9e4d10 --reason "Slack is down, agreed with Ingrid by phone"`,
		Args: cli.Args(2, 2),
		RunE: func(cmd *cobra.Command, args []string) error {
			o.Request = args[0]
			switch args[1] {
			case "approve":
				o.Approve = true
			case "reject":
			default:
				return cli.Misused("%q is not a decision: write approve or reject", args[1])
			}
			return decideAtTerminal(cmd, o)
		},
	}
	cmd.Flags().StringVar(&o.Reason, "reason", "", "why; people are told, and the agent is told why a call was rejected")
	cmd.Flags().StringVar(&o.Digest, "digest", "", "for approve: the digest of the request that you were shown, or its first 12 characters")
	return cmd
}

func decideAtTerminal(cmd *cobra.Command, o operatorDecision) error {
	if err := cli.CheckReason(&o.Reason); err != nil {
		return err
	}
	o.Digest = strings.ToLower(strings.TrimSpace(o.Digest))
	switch {
	case !o.Approve && o.Digest != "":
		return cli.Misused("--digest goes with approve: a rejection does not depend on the arguments")
	case o.Approve && o.Digest == "" && !cli.IsTerminal(cmd.InOrStdin()):
		return cli.Misused("say which arguments you approve: --digest, as `countersign pending %s` prints it", o.Request)
	case o.Approve && o.Digest == "":
		digest, err := confirmed(cmd, o.Request)
		if err != nil {
			return err
		}
		o.Digest = digest
	case o.Approve && len(o.Digest) < leastDigest:
		return cli.Misused("--digest is too short: give at least its first %d characters", leastDigest)
	}
	return decideTask.Do(cmd.Context(), o, nil, cmd.OutOrStdout())
}

// The function "confirmed" prints the whole request and asks the operator for confirmation. The result digest is the
// digest of the printed arguments.
func confirmed(cmd *cobra.Command, request string) (digest string, err error) {
	found, _, err := askPending(cmd.Context(), request, cmd.ErrOrStderr())
	if err != nil {
		return "", err
	}
	if len(found.Requests) != 1 {
		return "", cli.AnswerNo("%s is not a request that can be decided", visible.Line(request))
	}
	found.print(cmd.OutOrStdout(), true)
	switch r := found.Requests[0]; {
	case r.State != approvers.Pending:
		return "", notDecided(r.Request.Over(), request)
	case !r.BreakGlass:
		return "", notDecided(&approvers.Denied{Code: approvers.DeniedBreakGlass}, request)
	}
	fmt.Fprint(cmd.OutOrStdout(), "\nApprove exactly this, in place of everybody who is asked? Write approve: ")
	answer, err := bufio.NewReader(cmd.InOrStdin()).ReadString('\n')
	switch {
	case errors.Is(err, io.EOF) && answer == "":
		return "", cli.Misused("no answer was given: run the command again, with --digest and the digest that is printed above")
	case err != nil && !errors.Is(err, io.EOF):
		return "", cli.CouldNot("your answer can't be read: %w", err)
	}
	if strings.TrimSpace(answer) != "approve" {
		return "", cli.AnswerNo("nothing was decided")
	}
	return found.Requests[0].Digest, nil
}

// decideTask records an operator's decision.
var decideTask = task.Task[operatorDecision]{Name: "decide", Run: func(ctx context.Context, w task.Env, o operatorDecision) error {
	wf, err := w.Workflow()
	if err != nil {
		return err
	}
	c := workflow.Click{Who: approvers.Operates(w.Who), Request: o.Request, Kind: approvers.Reject, Reason: o.Reason}
	var r approvers.Request
	if o.Approve {
		c.Kind = approvers.Approve
		if c.Digest, err = wholeDigest(ctx, wf.Store, o); err != nil {
			return err
		}
		r, err = wf.Requests.BreakGlass(ctx, c)
	} else {
		r, err = wf.Requests.Overrule(ctx, c)
	}
	if err != nil {
		return notDecided(err, o.Request)
	}
	switch r.State {
	case approvers.Approved:
		fmt.Fprintf(w.Out, "Approved as %s. It is to be run by %s. Its approvers and their leads are told.\n", w.Who, cli.Moment(r.RunBy))
	case approvers.Revoked:
		fmt.Fprintf(w.Out, "Stopped as %s: it had been approved, and does not run. Its requester and approvers are told.\n", w.Who)
	default:
		fmt.Fprintf(w.Out, "Rejected as %s. Its requester and approvers are told.\n", w.Who)
	}
	return nil
}}

// wholeDigest returns the digest of a request's current arguments. If the prefix that the operator gave is too short,
// or if the digest does not start with this prefix, wholeDigest returns an error.
func wholeDigest(ctx context.Context, s store.Store, o operatorDecision) (digest string, err error) {
	err = s.View(ctx, func(r store.Reader) error {
		req, err := r.Request(o.Request)
		digest = req.Digest
		return err
	})
	switch {
	case errors.Is(err, store.ErrNotFound):
		return "", nil // the workflow reports the missing request
	case err != nil:
		return "", cli.CouldNot("the store can't be read: %w", err)
	case len(o.Digest) < leastDigest || !strings.HasPrefix(digest, o.Digest):
		return "", notDecided(&approvers.Denied{Code: approvers.DeniedStale}, o.Request)
	}
	return digest, nil
}

// notDecided returns an error that tells the operator why the bot recorded no decision.
func notDecided(err error, id string) error {
	id = visible.Line(id)
	var denied *approvers.Denied
	if !errors.As(err, &denied) {
		return cli.CouldNot("nothing can be decided now: %w", err)
	}
	switch denied.Code {
	case approvers.DeniedNotFound:
		return cli.AnswerNo("there is no request %s; `countersign pending` lists those that wait", id)
	case approvers.DeniedResolved:
		by := ""
		if denied.By != "" {
			by = " by " + visible.Line(string(denied.By))
		}
		return cli.AnswerNo("nothing was decided: it was settled before%s, at %s (%s)", by, cli.Moment(denied.At), denied.State)
	case approvers.DeniedStarted:
		return cli.AnswerNo("nothing was decided: its run has started; `countersign pending %s` shows its outcome", id)
	case approvers.DeniedLate:
		return cli.AnswerNo("nothing was decided: its time ended at %s", cli.Moment(denied.At))
	case approvers.DeniedStale:
		return cli.AnswerNo("nothing was decided: that is not the digest of its arguments as they are now; look at them with `countersign pending %s`", id)
	case approvers.DeniedDamaged:
		if denied.State == approvers.Consumed {
			return cli.AnswerNo("nothing was decided: its record is damaged, so it was closed; `countersign pending %s` shows what is known about its run", id)
		}
		return cli.AnswerNo("nothing was decided: its record is damaged, so it was closed and did not run. It can be asked for again")
	case approvers.DeniedBreakGlass:
		return cli.AnswerNo("nothing was decided: the policy in force does not let the operator approve this tool (break_glass). It can be rejected")
	}
	return cli.AnswerNo("nothing was decided (%s)", denied.Code)
}
