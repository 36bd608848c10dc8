package mcp

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"countersign/agent"
	"countersign/agent/jsonobject"
)

const (
	// maxQuestion limits the length of a server's question, and maxForm limits the schema of a server's form. Both
	// are in bytes.
	maxQuestion = 2000
	maxForm     = 16 << 10
	// maxVisits limits the number of addresses per call that a server may ask a person to visit.
	maxVisits = 3
)

// elicit shows a server's question to the requester of the call. If the question does not clearly belong to one run,
// elicit declines the question, because the question could reach the wrong person.
func (ses *session) elicit(ctx context.Context, r *sdk.ElicitRequest) (*sdk.ElicitResult, error) {
	key, _ := r.Params.Meta[questionKey].(string)
	q, f := ses.tap.whose(key)
	defer ses.tap.forget(key)
	declined := &sdk.ElicitResult{Action: string(agent.ReplyDeclined)}
	if f == nil || f.ask == nil {
		ses.server.log.WarnContext(ctx, "a question of an MCP server was declined", "why", "it belongs to no run, or to an unknown one")
		return declined, nil
	}
	form := agent.Form{From: "the server " + ses.server.Name, Text: r.Params.Message, Schema: q.schema, URL: r.Params.URL}
	if why := unfitForm(form); why != "" {
		ses.server.log.WarnContext(ctx, "a question of an MCP server was declined", "why", why)
		return declined, nil
	}
	reply, err := f.ask(ctx, form)
	if err != nil {
		return &sdk.ElicitResult{Action: string(agent.ReplyCancelled)}, nil //nolint:nilerr // the server is told no details
	}
	out := &sdk.ElicitResult{Action: string(reply.Action)}
	if reply.Action == agent.ReplyAccepted && form.URL == "" {
		if err := json.Unmarshal(reply.Values, &out.Content); err != nil {
			return declined, nil //nolint:nilerr // the submitted values are not an object
		}
	}
	return out, nil
}

// unfitForm returns the reason why a form must not be shown to a person, or "".
func unfitForm(f agent.Form) string {
	switch {
	case f.Text == "" || len(f.Text) > maxQuestion:
		return fmt.Sprintf("its text must have 1 to %d bytes", maxQuestion)
	case len(f.Schema) > maxForm:
		return fmt.Sprintf("its form has more than %d bytes", maxForm)
	case f.URL != "":
		return unfitAddress(f.URL)
	}
	return ""
}

// unfitAddress returns the reason why a person must not be sent to an address, or "".
func unfitAddress(text string) string {
	u, err := url.Parse(text)
	switch {
	case err != nil || len(text) > maxQuestion || u.Host == "":
		return "its address can't be read"
	case u.Scheme != "https" && (u.Scheme != "http" || openly(text)):
		return "its address is not https"
	case u.User != nil:
		return "its address has a name or password in it"
	}
	return ""
}

// addresses reads, from the data of a server's error, the addresses that a person must visit before the call. Each
// address becomes a form. If one of the addresses must not be shown to a person, addresses returns no form.
func addresses(server string, data json.RawMessage) []agent.Form {
	o, err := jsonobject.Read(data)
	if err != nil {
		return nil
	}
	list, err := jsonobject.ReadList(o.Get("elicitations"))
	if err != nil || len(list) > maxVisits {
		return nil
	}
	var out []agent.Form
	for _, raw := range list {
		e, err := jsonobject.Read(raw)
		if err != nil {
			return nil
		}
		f := agent.Form{From: "the server " + server, Text: e.Text("message"), URL: e.Text("url")}
		if f.URL == "" || unfitForm(f) != "" {
			return nil
		}
		out = append(out, f)
	}
	return out
}

// visit asks the requester of the call to visit the addresses in the forms. If the requester agrees, run repeats the
// call.
func (s *server) visit(ctx context.Context, in agent.Invocation, forms []agent.Form) error {
	for _, f := range forms {
		if in.Ask == nil {
			return errors.New("the server asks the requester to open a URL, but there is nobody to ask here; nothing was done")
		}
		reply, err := in.Ask(ctx, f)
		if err != nil {
			return fmt.Errorf("the server asks the requester to open a URL, but nobody could be asked; nothing was done: %w", err)
		}
		if reply.Action != agent.ReplyAccepted {
			return errors.New("the server asks the requester to open a URL, which was declined; nothing was done")
		}
	}
	return nil
}
