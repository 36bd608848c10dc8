package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"time"

	"github.com/spf13/cobra"

	"countersign/approvers"
	"countersign/approvers/desk"
	"countersign/store"
)

func pendingCommand() *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "pending [REQUEST]",
		Short: "What waits for people, and what needs somebody to look",
		Long: `Lists what waits for a decision, what was approved and has not run, and runs whose outcome nobody knows. With the id of a request it shows all of it:
what somebody has to see who decides it at the command line. What a terminal would hide or obey is written as ⟨…⟩.

It works while the bot runs, and on the store of a bot that does not. docs/operate.md says what to do next.`,
		Args: cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			id := ""
			if len(args) == 1 {
				id = args[0]
			}
			found, raw, err := askPending(cmd.Context(), id)
			if err != nil {
				return err
			}
			if asJSON {
				_, err := cmd.OutOrStdout().Write(plainJSON(raw))
				return err
			}
			found.print(cmd.OutOrStdout(), id != "")
			return nil
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print it as JSON, in plain ASCII")
	return cmd
}

// askPending asks for everything that waits, or for one request or run.
func askPending(ctx context.Context, id string) (found pending, raw []byte, err error) {
	var out bytes.Buffer
	if err := pendingTask.do(ctx, id, nil, &out); err != nil {
		return found, nil, err
	}
	if err := json.Unmarshal(out.Bytes(), &found); err != nil {
		return found, nil, couldNot("what waits can't be read: %w", err)
	}
	return found, out.Bytes(), nil
}

// pendingTask writes what waits, or one request or run by its id, in JSON.
var pendingTask = task[string]{"pending", false, func(ctx context.Context, w workplace, id string) error {
	d, err := w.desk()
	if err != nil {
		return err
	}
	p := pending{Now: d.Now().UTC()}
	pause, err := d.Paused(ctx)
	if err != nil {
		return couldNot("the store can't be read: %w", err)
	}
	if pause.On {
		p.Paused = &pause
	}
	if id != "" {
		err = p.readOne(ctx, d, id)
	} else {
		err = p.readAll(ctx, d)
	}
	if err != nil {
		return err
	}
	return json.NewEncoder(w.out).Encode(p)
}}

// pending is what waits for people.
type pending struct {
	Now      time.Time     `json:"now"`
	Paused   *desk.Pause   `json:"paused,omitempty"` // nil: it is not
	Requests []waitingCall `json:"requests"`
	Unknown  []unknownRun  `json:"unknown"` // runs of which people are asked what became of them
}

// waitingCall is a request that waits for people, or for its run.
type waitingCall struct {
	ID         string             `json:"id"`
	State      approvers.State    `json:"state"`
	Tool       string             `json:"tool"`
	Risk       string             `json:"risk"`
	What       string             `json:"what"` // it would do
	Asker      approvers.PersonID `json:"asker"`
	AskerName  string             `json:"asker_name"`
	Where      string             `json:"where"`
	Stage      int                `json:"stage"` // from 1
	Stages     []string           `json:"stages"`
	WaitsFor   string             `json:"waits_for"` // who may decide now
	Agreed     int                `json:"agreed"`
	Quorum     int                `json:"quorum"`
	Since      time.Time          `json:"since"`
	Until      time.Time          `json:"until"` // it is rejected, or not run any more
	Digest     string             `json:"digest"`
	BreakGlass bool               `json:"break_glass"` // the operator may approve it
	Trouble    []string           `json:"trouble,omitempty"`

	Request *approvers.Request `json:"request,omitempty"` // where one was asked for: all of it
	Run     *unknownRun        `json:"run,omitempty"`     // where one was asked for: what became of it
}

// unknownRun is a run, and as a rule one whose outcome nobody knows.
type unknownRun struct {
	Execution string                   `json:"execution"`
	State     approvers.ExecutionState `json:"state"`
	Request   string                   `json:"request,omitempty"`
	Tool      string                   `json:"tool"`
	Args      string                   `json:"args"`
	Where     string                   `json:"where"`
	Started   time.Time                `json:"started"`
	Until     time.Time                `json:"until,omitzero"` // then the agent is told that nobody knows
	Result    string                   `json:"result,omitempty"`
	By        approvers.PersonID       `json:"reported_by,omitempty"`
}

// pendingPage is how many requests are read in one snapshot.
const pendingPage = 200

func (p *pending) readAll(ctx context.Context, d *desk.Desk) error {
	p.Requests, p.Unknown = []waitingCall{}, []unknownRun{}
	var after store.RequestCursor
	for more := true; more; {
		var page []waitingCall
		err := d.Store.View(ctx, func(r store.Reader) error {
			page = nil
			requests, err := r.OpenRequests(after, pendingPage)
			if err != nil {
				return err
			}
			more = len(requests) == pendingPage
			for _, req := range requests {
				one, err := waitingOf(r, d.Policy(), req)
				if err != nil {
					return err
				}
				page = append(page, one)
				after = store.RequestCursor{CreatedAt: req.CreatedAt, ID: req.ID}
			}
			return nil
		})
		if err != nil {
			return couldNot("the store can't be read: %w", err)
		}
		p.Requests = append(p.Requests, page...)
	}
	err := d.Store.View(ctx, func(r store.Reader) error {
		p.Unknown = []unknownRun{}
		asked, err := r.Timers(store.TimerLeave, mostUnknown)
		if err != nil {
			return err
		}
		for _, t := range asked {
			e, err := r.Execution(t.Ref)
			if err != nil {
				return err
			}
			one, err := runOf(r, e)
			if err != nil {
				return err
			}
			one.Until = t.Due
			p.Unknown = append(p.Unknown, one)
		}
		return nil
	})
	if err != nil {
		return couldNot("the store can't be read: %w", err)
	}
	return nil
}

// mostUnknown bounds how many runs of unknown outcome are listed.
const mostUnknown = 1000

// readOne reads a request, or a run that nobody was asked about, whatever became of it.
func (p *pending) readOne(ctx context.Context, d *desk.Desk, id string) error {
	err := d.Store.View(ctx, func(r store.Reader) error {
		p.Requests, p.Unknown = []waitingCall{}, []unknownRun{}
		e, err := r.Execution(id)
		switch {
		case err == nil && e.Request == "":
			one, err := runOf(r, e)
			p.Unknown = append(p.Unknown, one)
			return err
		case err == nil:
			id = e.Request
		case !errors.Is(err, store.ErrNotFound):
			return err
		}
		req, err := r.Request(id)
		if err != nil {
			return err
		}
		one, err := waitingOf(r, d.Policy(), req)
		if err != nil {
			return err
		}
		if e, err = r.Execution(req.Execution); err != nil {
			return err
		}
		run, err := runOf(r, e)
		if err != nil {
			return err
		}
		one.Request, one.Run = &req, &run
		p.Requests = append(p.Requests, one)
		return nil
	})
	if errors.Is(err, store.ErrNotFound) {
		return answerNo("there is no request %s; `countersign pending` lists those that wait", onOneLine(id))
	}
	if err != nil {
		return couldNot("the store can't be read: %w", err)
	}
	return nil
}

// runOf describes a run.
func runOf(r store.Reader, e approvers.Execution) (unknownRun, error) {
	conv, err := r.Conversation(e.Conversation)
	if err != nil && !errors.Is(err, store.ErrNotFound) {
		return unknownRun{}, err
	}
	return unknownRun{
		Execution: e.ID, State: e.State, Request: e.Request, Tool: e.Tool, Args: string(e.Args), Where: whereText(conv), Started: e.StartedAt,
		Result: e.Result, By: e.ReportedBy,
	}, nil
}

// waitingOf describes a request.
func waitingOf(r store.Reader, p *approvers.Policy, req approvers.Request) (waitingCall, error) {
	conv, err := r.Conversation(req.Conversation)
	if err != nil && !errors.Is(err, store.ErrNotFound) {
		return waitingCall{}, err
	}
	tool, _ := p.Tool(req.Tool, req.Agent)
	w := waitingCall{
		ID: req.ID, State: req.State, Tool: req.Tool, Risk: req.Plan.Risk.String(), What: req.Preview, Asker: req.Facts.Asker, AskerName: req.Facts.AskerName,
		Where: whereText(conv), Stage: req.Stage + 1, Since: req.CreatedAt, Until: req.ExpiresAt, Digest: req.Digest, BreakGlass: tool.BreakGlass,
	}
	for _, s := range req.Plan.Stages {
		w.Stages = append(w.Stages, stageWords(p, s))
	}
	switch req.State {
	case approvers.Approved:
		w.Until = req.RunBy
	case approvers.Pending:
		w.WaitsFor, w.Agreed, w.Quorum = waitsFor(req), req.At(req.Stage), req.Plan.Stages[req.Stage].Quorum
	}
	w.Trouble, err = cardTrouble(r, req)
	return w, err
}

// whereText names a conversation's place.
func whereText(c store.Conversation) string {
	switch {
	case c.ID == "":
		return "a conversation that was erased"
	case c.DM:
		return "a direct message"
	case c.Name != "":
		return "#" + c.Name
	}
	return "the channel " + c.Channel
}

// cardTrouble says which of a request's cards people can't see, and whether they see any.
func cardTrouble(r store.Reader, req approvers.Request) (out []string, err error) {
	if req.State != approvers.Pending {
		return nil, nil
	}
	surfaces, err := r.SurfacesOf(req.ID)
	if err != nil {
		return nil, err
	}
	seen := req.Bundled() || len(req.Lines) > 0 // on a card with others, or behind others in a line
	for _, s := range surfaces {
		if s.Kind != store.SurfaceCard && s.Kind != store.SurfaceEscalation {
			continue
		}
		switch {
		case s.State == store.SurfaceUnreachable:
			out = append(out, "Slack refused the card for "+s.To+": "+s.LastError)
		case s.TS != "":
			seen = true
		}
	}
	if !seen {
		out = append(out, "no card is in Slack: nobody there can decide it now")
	}
	return out, nil
}
