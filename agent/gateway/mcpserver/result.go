package mcpserver

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"strings"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"countersign/agent/gateway"
	"countersign/approvers"
	"countersign/approvers/workflow"
	"countersign/approvers/workflow/view"
)

// onBehalfOfKey is the key of _meta in calls.
const onBehalfOfKey = "countersign/on_behalf_of"

// Keys of _meta in results.
const (
	dispositionKey = "io.modelcontextprotocol/tool-approval-disposition" // defined in the draft SEP-2848
	requestKey     = "countersign/request"
	ranAtKey       = "countersign/ran_at" // time of the run; set if the result is that of an earlier, identical call that ran
)

// approvalExtension is the extension of the draft SEP-2848.
const approvalExtension = "io.modelcontextprotocol/tool-approval"

// members has the JSON members of a result by name.
type members map[string]any

// result is an MCP result for which the SDK has no type.
type result struct {
	mcp.ResultBase
	members members
}

// MarshalJSON returns the members, with _meta.
func (r *result) MarshalJSON() ([]byte, error) {
	out := maps.Clone(r.members)
	if len(r.Meta) > 0 {
		out["_meta"] = r.Meta
	}
	return json.Marshal(out)
}

// complete is the result of a tool call in the protocol version 2026-07-28 and later. These versions require the
// member resultType, which the SDK's type does not have.
type complete struct{ *mcp.CallToolResult }

// MarshalJSON adds the member resultType to the result.
func (c *complete) MarshalJSON() ([]byte, error) {
	raw, err := c.CallToolResult.MarshalJSON()
	if err != nil {
		return nil, err
	}
	return append([]byte(`{"resultType":"complete",`), raw[1:]...), nil
}

func texts(parts ...string) (out []mcp.Content) {
	for _, p := range parts {
		if p != "" {
			out = append(out, &mcp.TextContent{Text: p})
		}
	}
	return out
}

// refused returns the answer to a call that could not be proposed. If the workflow has refused the call, the call does
// not run. After any other error, an earlier identical call, or the call itself, may run. The answers of refused and
// unhandled are tool results with an error, because the client's model reads only results.
func (s *Server) refused(ctx context.Context, x *exchange, err error) (mcp.Result, error) {
	var problem *workflow.CallerProblem
	if !errors.As(err, &problem) || problem.Code == workflow.CallerUnknown {
		return s.unhandled(ctx, x, "", err)
	}
	text, says := s.explain(ctx, x, "", err)
	says["status"] = "refused"
	return &mcp.CallToolResult{
		IsError: true, Content: texts("The call did not run. " + text), StructuredContent: says, Meta: mcp.Meta{dispositionKey: gateway.Denied},
	}, nil
}

// unhandled returns the answer to a message about a call if the message could not be handled. The answer does not say
// what happened to the call, because the call may be waiting, running or over. The parameter id is the id of the
// request. If the id is unknown, it is empty.
func (s *Server) unhandled(ctx context.Context, x *exchange, id string, err error) (mcp.Result, error) {
	text, says := s.explain(ctx, x, id, err)
	out := &mcp.CallToolResult{IsError: true, StructuredContent: says, Meta: mcp.Meta{}}
	var problem *workflow.CallerProblem
	switch {
	case errors.As(err, &problem) && problem.Code == workflow.CallerNotFound:
	case id == "":
		text += " The call may have run. To get its result, call again with the same arguments."
	default:
		text += fmt.Sprintf(" The call may have run. To get its result, call countersign.result with request %s.", id)
		says["request"], out.Meta[requestKey] = id, id
	}
	out.Content = texts(text)
	return out, nil
}

// explain explains an error to the client's model, in a text and in the members of a structured result.
func (s *Server) explain(ctx context.Context, x *exchange, id string, err error) (text string, says map[string]any) {
	text, again, known := gateway.Explain(err)
	if !known {
		s.Log.ErrorContext(ctx, "a caller's call could not be handled", "client", x.client.Name, "request", id, "error", err)
	}
	says = map[string]any{}
	if again > 0 {
		says["retry_after"] = seconds(again)
		text += fmt.Sprintf(" Try again in %s.", again.Round(time.Second))
	}
	return text, says
}

func seconds(d time.Duration) int { return int((d + time.Second - 1) / time.Second) }

// waits returns a sentence for the client's model about what a request waits for.
func waits(s *gateway.State) string {
	switch s.Status {
	case gateway.StatusRunning:
		return "The call is running."
	case gateway.StatusApproved:
		return "The call is approved, and is about to run."
	}
	text := "The call waits for " + strings.Join(s.WaitsFor, " or ")
	if !s.ExpiresAt.IsZero() {
		text += ", until " + clock(s.ExpiresAt)
	}
	text += "."
	if q, ok := open(s); ok {
		text += fmt.Sprintf(" %s asks: %q Answer with the tool countersign.answer: request %s, question %d.", q.By, q.Text, s.ID, q.Question)
	}
	return text
}

func clock(t time.Time) string { return t.UTC().Format("2006-01-02 15:04 UTC") }

// pending returns the answer to a call without a result. The parameter why says what ended the wait.
func pending(s *gateway.State, why string) mcp.Result {
	says := map[string]any{"request": s.ID, "status": s.Status, "retry_after": 0}
	if len(s.WaitsFor) > 0 {
		says["waits_for"] = s.WaitsFor
	}
	if !s.ExpiresAt.IsZero() {
		says["expires_at"] = s.ExpiresAt
	}
	text := "The call has no result yet. " + waits(s)
	if q, ok := open(s); ok {
		says["question"] = map[string]any{"question": q.Question, "text": q.Text, "by": q.By}
	}
	if why == whyStopping {
		says["retry_after"] = 5
		text += " The server is about to restart, so wait some seconds first."
	}
	text += fmt.Sprintf(" To go on waiting, call again with the same arguments, or call countersign.result with request %s. The call is made once only, however often you repeat it.", s.ID)
	return &mcp.CallToolResult{IsError: true, Content: texts(text), StructuredContent: says, Meta: mcp.Meta{requestKey: s.ID}}
}

// finished returns the answer to a call with a result. If the result comes from an earlier call, the parameter earlier
// is true.
func finished(s *gateway.State, rec *view.CallerRequest, earlier bool) *mcp.CallToolResult {
	out := &mcp.CallToolResult{Meta: mcp.Meta{requestKey: s.ID}}
	if s.Disposition != "" {
		out.Meta[dispositionKey] = s.Disposition
	}
	before := ""
	if at := rec.Call.ReturnedAt; earlier && !at.IsZero() {
		before = fmt.Sprintf("This is the answer to your earlier identical call, from %s.", clock(at))
		if rec.Conversation.Caller.Delivered.IsZero() {
			before += " The answer did not reach you at that time."
		}
		if s.Disposition == gateway.Denied {
			before += " Nobody was asked again."
		} else {
			before += " The call was not made again."
		}
		if s.Disposition == gateway.Executed || s.Disposition == gateway.Failed {
			out.Meta[ranAtKey] = at.UTC().Format(time.RFC3339)
		}
	}
	changed := ""
	if d := s.Decision; d != nil && d.Type == "edit" {
		changed = "An approver changed the arguments of the call to " + string(d.Args) + "."
		if d.Reason != "" {
			changed += " The reason: " + d.Reason
		}
	}
	switch s.Disposition {
	case gateway.Executed:
		out.Content = texts(before, changed, s.Result)
		if s.Result == "" {
			out.Content = texts(before, changed, "The call ran.")
		}
		return out
	case gateway.Uncertain:
		if rec.Lost() {
			why := ""
			if s.Reason != "" {
				why = ": " + s.Reason
			}
			out.Content = texts(before, changed, "It is not known whether the call was decided, or ran"+why+". Don't try it in another way.")
			break
		}
		out.Content = texts(before, changed, "The call may have run: its outcome is not known. People were asked what happened. Don't try it in another way. "+
			"If you repeat the call with the same arguments, it is not made again, and the answer says what people have found out.")
	case gateway.Denied:
		out.Content = texts(before, changed, notRun(s))
	default:
		out.Content = texts(before, changed, "The call ran and failed: "+s.Result)
	}
	out.IsError = true
	return out
}

// notRun returns a sentence about the reason why a call did not run.
func notRun(s *gateway.State) string {
	text := "The call did not run"
	switch s.Status {
	case string(approvers.OutcomeRejected):
		by := ""
		if d := s.Decision; d != nil && len(d.By) > 0 {
			by = " by " + d.By[0].Role
		}
		text = "The call was rejected" + by + ", and did not run"
	case string(approvers.OutcomeExpired):
		text = "The call was not decided, or could not begin, in time, so it did not run"
	case string(approvers.OutcomeWithdrawn):
		text = "The call was withdrawn, and did not run"
	case string(approvers.OutcomeObserved):
		text = "The call did not run, because the policy only observes calls to this tool"
	}
	if s.Reason != "" {
		return text + ": " + s.Reason
	}
	return text + "."
}
