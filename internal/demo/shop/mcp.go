package shop

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// MetaKey is the key in a call's _meta that holds the idempotency key. A call that changes something needs an
// idempotency key.
const MetaKey = "countersign/execution"

// idleSession is how long an HTTP session without a request is kept.
const idleSession = time.Hour

const instructions = "The tools of a small sample shop. A tool that changes something needs an idempotency key in the call's _meta as " +
	MetaKey + ". The same key is answered with the same result again, and acts once."

// ServeIO serves the tools over a pair of streams with MCP's stdio transport: one JSON-RPC message per line. ServeIO
// returns at the end of the input, or when ctx ends.
func (s *Shop) ServeIO(ctx context.Context, in io.ReadCloser, out io.WriteCloser) error {
	err := s.mcpServer().Run(ctx, &mcp.IOTransport{Reader: in, Writer: out})
	if errors.Is(err, context.Canceled) {
		return nil
	}
	return err
}

// mcpHandler serves the tools over MCP's streamable HTTP. Web pages of other origins can't call the tools.
func (s *Shop) mcpHandler() http.Handler {
	server := s.mcpServer()
	h := mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return server }, &mcp.StreamableHTTPOptions{
		SessionTimeout: idleSession, PropagateRequestCancellation: true,
	})
	return http.NewCrossOriginProtection().Handler(h)
}

func (s *Shop) mcpServer() *mcp.Server {
	server := mcp.NewServer(&mcp.Implementation{Name: "countersign-shop", Title: "Countersign's sample shop", Version: "1"}, &mcp.ServerOptions{
		Instructions: instructions,
		Capabilities: &mcp.ServerCapabilities{}, // without logging; the server itself adds the capability for tools
	})
	for _, t := range s.Tools() {
		call := func(ctx context.Context, req *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
			return answer(t.Run(ctx, keyOf(req), req.Params.Arguments)), nil
		}
		if t.Name == exportTool {
			call = s.exportAsked
		}
		server.AddTool(&mcp.Tool{Name: t.Name, Title: t.Title, Description: t.Description, InputSchema: t.Schema, Annotations: t.annotations()}, call)
	}
	return server
}

// The method "annotations" returns the shop's MCP annotations of a tool. MCP's idempotent hint is about calls with the
// same arguments, even if their idempotency keys differ. Therefore the hint comes from Settles, not from Effect.
func (t Tool) annotations() *mcp.ToolAnnotations {
	destroys, open := t.Destroys, t.Outside
	a := &mcp.ToolAnnotations{Title: t.Title, ReadOnlyHint: t.Effect == EffectRead, IdempotentHint: t.Settles, OpenWorldHint: &open}
	if !a.ReadOnlyHint {
		a.DestructiveHint = &destroys
	}
	return a
}

// keyOf returns the call's idempotency key, or "".
func keyOf(req *mcp.CallToolRequest) string {
	key, _ := req.Params.Meta[MetaKey].(string)
	return key
}

// answer converts a tool's result to MCP. The MCP result has the tool's result in structured form, and the same bytes
// as text. An error becomes a result with the error's text.
func answer(result json.RawMessage, err error) *mcp.CallToolResult {
	r := &mcp.CallToolResult{}
	if err != nil {
		r.SetError(err)
		return r
	}
	r.StructuredContent = result
	r.Content = []mcp.Content{&mcp.TextContent{Text: string(result)}}
	return r
}

const (
	exportTool = "export_customer_data"
	// asked is the name of the question that a call asks the requester.
	asked = "sections"
)

// exportAsked is export_customer_data. Arguments without sections mean all sections, so people have approved the export
// of all sections. If the client can ask questions, the tool then asks the requester which of the sections to export.
func (s *Shop) exportAsked(ctx context.Context, req *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
	args, err := arguments[ExportArgs](exportTool, req.Params.Arguments)
	if err != nil {
		return answer(nil, err), nil
	}
	key := keyOf(req)
	if len(args.Sections) == 0 && key != "" && canAsk(req.Session) && !s.answered(key) {
		reply, ok := req.Params.InputResponses[asked].(*mcp.ElicitResult)
		if !ok {
			return &mcp.CallToolResult{InputRequests: mcp.InputRequestMap{asked: sectionsForm(args.UserID)}}, nil
		}
		if args.chosen, err = chosen(reply); err != nil {
			return answer(nil, err), nil
		}
	}
	tell := progress(ctx, req, 2)
	tell(1, "Collecting the data of "+args.UserID)
	result, err := s.ExportCustomerData(ctx, key, args)
	if err != nil {
		return answer(nil, err), nil
	}
	tell(2, "Entered in the ledger as "+result.ExportID)
	return answer(json.Marshal(result)), nil
}

// canAsk reports whether the client can show forms to people.
func canAsk(session *mcp.ServerSession) bool {
	p := session.InitializeParams()
	if p == nil || p.Capabilities == nil || p.Capabilities.Elicitation == nil {
		return false
	}
	e := p.Capabilities.Elicitation
	return e.Form != nil || e.URL == nil // a client that names no mode supports forms
}

// sectionsForm returns a form that asks which sections to export. The form has a checkbox for each section. Initially,
// all checkboxes are checked.
func sectionsForm(user string) *mcp.ElicitParams {
	var boxes []string // a list, because a map would lose the order of the checkboxes
	for _, section := range exportSections {
		boxes = append(boxes, fmt.Sprintf(`%q:{"type":"boolean","title":%q,"default":true}`, section, strings.ToUpper(section[:1])+section[1:]))
	}
	return &mcp.ElicitParams{
		Message:         "Which of the data of " + shown(user) + " shall be exported? Without an answer all of it is.",
		RequestedSchema: json.RawMessage(`{"type":"object","properties":{` + strings.Join(boxes, ",") + `}}`),
	}
}

// The function "chosen" reads the answer to the form of sections.
func chosen(reply *mcp.ElicitResult) ([]string, error) {
	switch reply.Action {
	case "accept":
	case "cancel":
		return nil, nil // no answer: export all sections, as approved
	default:
		return nil, problem(ErrRefused, "The person who asked for the export does not want it any more, so nothing was exported.")
	}
	sections := slices.DeleteFunc(slices.Clone(exportSections), func(section string) bool {
		ticked, answered := reply.Content[section].(bool)
		return answered && !ticked
	})
	if len(sections) == 0 {
		return nil, problem(ErrRefused, "None of the sections was chosen, so nothing was exported.")
	}
	return sections, nil
}

// progress returns a function that reports the call's progress to the client. If the client did not ask for progress,
// the function does nothing.
func progress(ctx context.Context, req *mcp.CallToolRequest, total float64) func(done float64, text string) {
	token := req.Params.GetProgressToken()
	return func(done float64, text string) {
		if token != nil {
			// The error is ignored. If the client is gone, sending the answer fails, too.
			_ = req.Session.NotifyProgress(ctx, &mcp.ProgressNotificationParams{ProgressToken: token, Progress: done, Total: total, Message: text})
		}
	}
}
