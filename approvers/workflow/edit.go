package workflow

import (
	"encoding/json"

	"countersign/approvers"
)

// edit prepares changed arguments: checked against the schema, with a new execution, digest, preview and plan.
func (t requestsTx) edit(r approvers.Request, args json.RawMessage) (approvers.Edited, *approvers.Denied) {
	tool, _ := t.w.Tools.Tool(r.Tool)
	p, _ := t.policy.Tool(r.Tool, r.Agent)
	values, err := approvers.StrictArgs(args, p.ReadsNumbers())
	if err == nil {
		err = tool.Check(args)
	}
	if err != nil {
		return approvers.Edited{}, &approvers.Denied{
			Code: approvers.DeniedInvalidArgs, Detail: plainFault(err),
		}
	}
	if approvers.EqualArgs(args, r.Args) {
		return approvers.Edited{}, &approvers.Denied{Code: approvers.DeniedUnchanged}
	}
	e := approvers.Edited{Execution: t.newID("exec"), Args: args}
	e.Digest = approvers.Digest(e.Execution, r.Tool, r.ToolHash, args)
	e.Preview, e.PreviewFault = t.proposals.preview(r.Tool, r.Agent, approvers.MaskValues(values, r.Secrets))
	e.ToolPreview = t.previews.requestToolPreview(r.Tool, r.Agent, e.Digest)
	e.Plan = t.policy.Plan(r.AsCall(values))
	return e, nil
}

// replaceExecution sets the execution of edited arguments as the call's current one.
func (t requestsTx) replaceExecution(r approvers.Request) error {
	call, err := t.Call(r.Call)
	if err != nil {
		return err
	}
	e := approvers.Execution{
		ID: r.Execution, State: approvers.ExecutionNone, Conversation: r.Conversation, Turn: r.Turn, Call: r.Call,
		Request: r.ID, Asker: r.Facts.Asker, Tool: r.Tool, ToolHash: r.ToolHash, Effect: r.Effect, Args: r.Args, Digest: r.Digest, CreatedAt: t.now,
	}
	if err := t.PutExecution(e); err != nil {
		return err
	}
	call.Execution, call.Preview = e.ID, r.Preview
	return t.PutCall(call)
}
