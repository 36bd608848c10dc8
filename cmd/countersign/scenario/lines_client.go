package scenario

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"strings"

	"countersign/agent/client"
)

// clientLines are the actions of another agent over the gateway, in the mode "decide". The agent runs its tools itself.
var clientLines = []line{
	{`CLIENT asks over the gateway for TOOL: {"service":"shop"}`, regexp.MustCompile(`^([\w-]+) asks over the gateway for ([\w.-]+): (\{.*\})$`), func(m []string) (action, error) {
		if !json.Valid([]byte(m[3])) {
			return action{}, fmt.Errorf("%s is not valid JSON", m[3])
		}
		return happens(func(ctx context.Context, p *player) error { return p.askAs(ctx, m[1], m[2], m[3]) })
	}},
	{"CLIENT goes on with TOOL: deployed", regexp.MustCompile(`^([\w-]+) goes on with ([\w.-]+): (.+)$`), func(m []string) (action, error) {
		return happens(func(ctx context.Context, p *player) error { return p.goOnAs(ctx, m[1], m[2], m[3]) })
	}},
}

// asked is a call that a client has requested over the gateway.
type asked struct {
	client, tool string
	args         json.RawMessage
	request      *client.Request
}

// askAs requests a call as a client, and does not wait for the decision.
func (p *player) askAs(ctx context.Context, name, tool, args string) error {
	c, err := p.demo.Gateway(name)
	if err != nil {
		return err
	}
	a := asked{client: name, tool: tool, args: json.RawMessage(args)}
	a.request, err = c.Ask(ctx, client.NewKey(), "decide", client.Call{Tool: tool, Args: a.args, Accepts: client.All})
	if p.refused(name, err) {
		return nil
	}
	if err == nil {
		p.asked = append(p.asked, a)
	}
	return err
}

// goOnAs reads the decision about the client's newest call to a tool. If the call was approved, the client claims the
// call, runs the tool and reports the result.
func (p *player) goOnAs(ctx context.Context, name, tool, result string) error {
	c, err := p.demo.Gateway(name)
	if err != nil {
		return err
	}
	for i := len(p.asked) - 1; i >= 0; i-- {
		a := p.asked[i]
		if a.client != name || a.tool != tool {
			continue
		}
		r, err := c.Get(ctx, a.request.ID, 0)
		if err != nil {
			return err
		}
		if r.Status == client.Pending {
			p.aside(name + " still waits for " + strings.Join(r.WaitsFor, " or "))
			return nil
		}
		args, err := r.Approved(a.args)
		if p.refused(name, err) {
			return nil
		}
		if err != nil {
			return err
		}
		if r, err = c.Claim(ctx, r); p.refused(name, err) {
			return nil
		}
		if err != nil {
			return err
		}
		p.aside(fmt.Sprintf("%s runs %s %s", name, tool, args))
		_, err = c.Report(ctx, r.ID, r.Run, client.Succeeded, result)
		return err
	}
	return fmt.Errorf("%s has not asked for %s", name, tool)
}

// If an error is a refusal of the gateway, the method "refused" adds it to the transcript, and returns true.
func (p *player) refused(name string, err error) bool {
	if errors.As(err, new(*client.Refusal)) || errors.As(err, new(*client.Problem)) {
		p.aside(name + " is told: " + err.Error())
		return true
	}
	return false
}
