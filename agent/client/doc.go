// Package client requests approvals of tool calls from Countersign's gateway, over HTTP. The package imports only the
// standard library, so that other programs can copy the package.
//
// A caller that runs its tools itself gets a decision with [Client.Decide], and reports the outcome with
// [Client.Report]:
//
//	approval, err := c.Decide(ctx, callID, client.Call{Tool: "billing.refund", Args: args, Accepts: client.All})
//	if err != nil {
//		return err // the tool must not be run; errors.As finds a *client.Refusal
//	}
//	text, err := refund(approval.Args)
//	c.Report(ctx, approval.ID, approval.Run, client.Succeeded, text)
//
// A caller that lets Countersign run the tool uses [Client.Execute].
//
// The package promises:
//
//   - Arguments are sent byte for byte. Before a claim, the arguments are compared with the hash in the gateway's
//     answer.
//   - A request is repeated only if the repetition has no second effect. This rule allows repetitions of reads,
//     reports, withdrawals, and requests with an idempotency key. Any request, such as a claim, is repeated if it did
//     not reach the gateway, or if the gateway answers that it did nothing.
//   - If the answer to a claim is lost, the tool counts as not run, and the error is [ErrClaimLost].
//   - The token never appears in an error, and is never sent to another host.
package client
