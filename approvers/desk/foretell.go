package desk

import (
	"context"
	"encoding/json"
	"fmt"
	"strconv"
	"time"

	"countersign/approvers"
	"countersign/store"
)

// Previewing is one try to have a tool say what a call would do.
type Previewing struct {
	Request, Conversation, Turn string
	Asker                       approvers.PersonID
	Digest                      string // of the call that it is about
	Key                         string // not the execution's, so that nothing is used up by it
	Tool, ToolHash              string // what is called, and its definition
	Own                         bool   // the tool's own function for previews
	Args                        json.RawMessage
	Within                      time.Duration
}

// foretellLease is how long past its own time a try may take before it counts as lost with its process.
const foretellLease = 15 * time.Second

// foreteller says which tool is asked what a call would do: the policy's, or the tool itself where it can say and the policy has no template.
func (t *tx) foreteller(tool, agent string) approvers.Foreteller {
	p, _ := t.policy.Tool(tool, agent)
	by := p.Preview.By
	known, _ := t.d.Tools.Tool(tool)
	switch {
	case by.Argument != "":
		by.Tool = tool
	case by.Tool == "" && known.Previews && p.Preview.Render == nil && !p.NoPreview:
		by.Tool = tool
	}
	if by.Within == 0 {
		by.Within = approvers.DefaultWithin
	}
	return by
}

// forecast begins a forecast for a call that people decide; nil where no tool is asked.
func (t *tx) forecast(tool, agent, digest string) *approvers.Forecast {
	by := t.foreteller(tool, agent)
	if by.Tool == "" {
		return nil
	}
	return begun(by, tool, digest)
}

func begun(by approvers.Foreteller, tool, digest string) *approvers.Forecast {
	return &approvers.Forecast{
		By: by.Tool, Dry: by.Argument != "", Own: by.Tool == tool && by.Argument == "", State: approvers.ForecastMaking, Digest: digest,
	}
}

// armForecast has a forecast made that just began, and leaves one alone that is under way.
func (t *tx) armForecast(before, r approvers.Request) error {
	switch {
	case !r.Forecast.Making():
		return t.ClearTimer(store.TimerPreview, r.ID)
	case before.Execution == r.Execution && before.State == approvers.Pending:
		return nil
	}
	t.stops[handled{store.TimerPreview, r.ID}] = true // of the arguments before an edit
	return t.SetTimer(store.Timer{Kind: store.TimerPreview, Ref: r.ID, Due: t.now})
}

// BeginPreview takes up the making of a request's forecast. It reports false where there is nothing to make: the request is decided, or the tool can't be asked,
// which the card says then. While everything is paused it gives ErrPaused.
func (d *Desk) BeginPreview(ctx context.Context, request string) (p Previewing, ok bool, err error) {
	err = d.update(ctx, "begin preview", func(t *tx) (err error) {
		p, ok, err = t.beginPreview(request)
		return err
	})
	return p, ok, err
}

func (t *tx) beginPreview(request string) (p Previewing, ok bool, err error) {
	r, err := t.Request(request)
	if ignoreNotFound(err) != nil {
		return p, false, err
	}
	if err != nil || r.State != approvers.Pending || !r.Forecast.Making() {
		return p, false, t.ClearTimer(store.TimerPreview, request)
	}
	if err := ifPaused(t); err != nil {
		return p, false, err
	}
	before, by, tries := r, t.foreteller(r.Tool, r.Agent), r.Forecast.Tries
	if by.Tool == "" { // the policy asks for none any more
		r.Forecast = nil
		return p, false, t.follow(before, r)
	}
	r.Forecast = begun(by, r.Tool, r.Digest)
	r.Forecast.Tries = tries + 1
	if tries >= approvers.ForecastTries {
		return p, false, t.foretold(before, r, "", fmt.Sprintf("it was begun %d times, and each time the process stopped before it was there", tries))
	}
	p, problem := t.previewing(r, by)
	if problem != "" {
		return p, false, t.foretold(before, r, "", problem)
	}
	if err := t.PutRequest(r); err != nil {
		return p, false, err
	}
	if r.Forecast.Dry { // what is called is the tool itself: that is recorded before it is
		if err := t.auditForecast(r, "asked", nil); err != nil {
			return p, false, err
		}
	}
	return p, true, t.SetTimer(store.Timer{Kind: store.TimerPreview, Ref: r.ID, Due: t.now.Add(by.Within + foretellLease), PutOff: t.now})
}

// previewing says how a forecast is made, or why it can't be. A companion has to be one that runs without asking anybody, and takes the very same arguments.
func (t *tx) previewing(r approvers.Request, by approvers.Foreteller) (p Previewing, problem string) {
	p = Previewing{
		Request: r.ID, Conversation: r.Conversation, Turn: r.Turn, Asker: r.Facts.Asker, Digest: r.Digest, Key: "preview_" + r.Execution,
		Tool: by.Tool, Own: r.Forecast.Own, Args: r.Args, Within: by.Within,
	}
	tool, ok := t.d.Tools.Tool(by.Tool)
	if p.ToolHash = tool.Hash; !ok || tool.Asks {
		return p, fmt.Sprintf("there is no tool %s that could be asked", by.Tool)
	}
	if tool.Blocked != "" {
		return p, by.Tool + " can't be called: " + tool.Blocked
	}
	var err error
	switch {
	case p.Own:
		if !tool.Previews {
			return p, by.Tool + " can't say itself what a call would do"
		}
		return p, ""
	case by.Argument != "":
		if p.Args, err = approvers.SetMember(r.Args, by.Argument, by.Value); err != nil {
			return p, plainFault(err)
		}
	default:
		if problem := t.mayForetell(r, tool); problem != "" {
			return p, problem
		}
	}
	if err := tool.Check(p.Args); err != nil {
		return p, by.Tool + " does not take these arguments: " + plainFault(err)
	}
	return p, ""
}

// mayForetell says why a companion may not be called with a request's arguments, or "".
func (t *tx) mayForetell(r approvers.Request, companion Tool) string {
	if companion.Effect != approvers.ReadOnly {
		return companion.Name + " is not declared to only read"
	}
	args, err := approvers.StrictArgs(r.Args, false)
	if err != nil {
		return plainFault(err)
	}
	call := r.AsCall(args)
	call.Tool, call.Effect = companion.Name, companion.Effect
	if t.policy.Plan(call).Verdict != approvers.Auto {
		return "the policy does not let " + companion.Name + " run without asking"
	}
	return ""
}

// EndPreview takes in what the tool said, or why it said nothing. What is about other arguments than the request has now, or comes after it was decided, changes nothing.
func (d *Desk) EndPreview(ctx context.Context, p Previewing, text, fault string) error {
	return d.update(ctx, "end preview", func(t *tx) error {
		r, err := t.Request(p.Request)
		if err != nil {
			return ignoreNotFound(err)
		}
		if r.Digest != p.Digest {
			return nil
		}
		return t.foretold(r, r, text, fault)
	})
}

// PutBackPreview leaves the making of a forecast that a pause, or the end of the process, interrupted: it is begun again when everything goes on.
func (d *Desk) PutBackPreview(ctx context.Context, p Previewing) error {
	return d.update(ctx, "put back preview", func(t *tx) error {
		r, err := t.Request(p.Request)
		if err != nil || r.State != approvers.Pending || !r.Forecast.Making() || r.Digest != p.Digest {
			return ignoreNotFound(err)
		}
		f := *r.Forecast
		f.Tries = max(0, f.Tries-1)
		r.Forecast = &f
		if err := t.PutRequest(r); err != nil {
			return err
		}
		return t.SetTimer(store.Timer{Kind: store.TimerPreview, Ref: r.ID, Due: t.now})
	})
}

// recoverPreviews has forecasts begun again that an earlier process was at: making one changes nothing.
func (t *tx) recoverPreviews() error {
	timers, err := t.Timers(store.TimerPreview, mostRuns)
	if err != nil {
		return err
	}
	for _, timer := range timers {
		if timer.PutOff.IsZero() {
			continue
		}
		if err := t.SetTimer(store.Timer{Kind: timer.Kind, Ref: timer.Ref, Due: t.now}); err != nil {
			return err
		}
	}
	return nil
}

// foretold writes what became of a forecast, and has it shown.
func (t *tx) foretold(before, r approvers.Request, text, fault string) error {
	r, changed := r.Foretell(r.Digest, text, fault, t.now)
	if !changed {
		return nil
	}
	if err := t.auditForecast(r, string(r.Forecast.State), []byte(r.Forecast.Text+r.Forecast.Fault)); err != nil {
		return err
	}
	if r.Preview != before.Preview {
		call, err := t.Call(r.Call)
		if err != nil {
			return err
		}
		call.Preview = r.Preview
		if err := t.PutCall(call); err != nil {
			return err
		}
	}
	return t.follow(before, r)
}

// auditForecast records that a tool was asked what a call would do, and what it said.
func (t *tx) auditForecast(r approvers.Request, state string, body []byte) error {
	facts := map[string]string{"digest": r.Digest, "by": r.Forecast.By, "state": state, "try": strconv.Itoa(r.Forecast.Tries)}
	if r.Forecast.Dry {
		facts["dry_run"] = "true"
	}
	if body == nil {
		return t.audit(r.ID, approvers.AuditPreviewed, "", facts, nil)
	}
	return t.audit(r.ID, approvers.AuditPreviewed, "", facts, body)
}
