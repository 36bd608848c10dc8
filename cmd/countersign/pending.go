package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"time"

	"github.com/spf13/cobra"

	"countersign/approvers"
	"countersign/approvers/workflow"
	"countersign/approvers/workflow/settings"
	"countersign/cmd/countersign/cli"
	"countersign/internal/visible"
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

// askPending requests everything that waits, or one request or run.
func askPending(ctx context.Context, id string) (found pending, raw []byte, err error) {
	var out bytes.Buffer
	if err := pendingTask.do(ctx, id, nil, &out); err != nil {
		return found, nil, err
	}
	if err := json.Unmarshal(out.Bytes(), &found); err != nil {
		return found, nil, cli.CouldNot("what waits can't be read: %w", err)
	}
	return found, out.Bytes(), nil
}

// pendingTask writes everything that waits, or one request or run by its id, as JSON.
var pendingTask = task[string]{"pending", false, func(ctx context.Context, w taskEnv, id string) error {
	wf, err := w.workflow()
	if err != nil {
		return err
	}
	p := pending{Now: wf.Now().UTC()}
	pause, err := wf.Views.Paused(ctx)
	if err != nil {
		return cli.CouldNot("the store can't be read: %w", err)
	}
	if pause.On {
		p.Paused = &pause
	}
	if id != "" {
		err = p.readOne(ctx, wf, id)
	} else {
		err = p.readAll(ctx, wf)
	}
	if err != nil {
		return err
	}
	return json.NewEncoder(w.out).Encode(p)
}}

// pending lists everything that waits for people.
type pending struct {
	Now      time.Time       `json:"now"`
	Paused   *settings.Pause `json:"paused,omitempty"` // nil: not paused
	Requests []waitingCall   `json:"requests"`
	Unknown  []unknownRun    `json:"unknown"` // runs with an unknown outcome
}

// waitingCall is a request that waits for people or for its run.
type waitingCall struct {
	ID         string             `json:"id"`
	State      approvers.State    `json:"state"`
	Tool       string             `json:"tool"`
	Risk       string             `json:"risk"`
	What       string             `json:"what"` // its effect in one sentence
	Asker      approvers.PersonID `json:"asker"`
	AskerName  string             `json:"asker_name"`
	Where      string             `json:"where"`
	Stage      int                `json:"stage"` // from 1
	Stages     []string           `json:"stages"`
	WaitsFor   string             `json:"waits_for"` // who can decide now
	Agreed     int                `json:"agreed"`
	Quorum     int                `json:"quorum"`
	Since      time.Time          `json:"since"`
	Until      time.Time          `json:"until"` // then it is rejected, or can't run any more
	Digest     string             `json:"digest"`
	BreakGlass bool               `json:"break_glass"` // the operator may approve it
	Trouble    []string           `json:"trouble,omitempty"`

	Request *approvers.Request `json:"request,omitempty"` // the whole request, if it was asked for by id
	Run     *unknownRun        `json:"run,omitempty"`     // the run, if it was asked for by id
}

// unknownRun is a run, usually one with an unknown outcome.
type unknownRun struct {
	Execution string                   `json:"execution"`
	State     approvers.ExecutionState `json:"state"`
	Request   string                   `json:"request,omitempty"`
	Tool      string                   `json:"tool"`
	Args      string                   `json:"args"`
	Where     string                   `json:"where"`
	Started   time.Time                `json:"started"`
	Until     time.Time                `json:"until,omitzero"` // then the agent learns that the outcome is unknown
	Result    string                   `json:"result,omitempty"`
	By        approvers.PersonID       `json:"reported_by,omitempty"`
}

// pendingPage is the number of requests per snapshot.
const pendingPage = 200

func (p *pending) readAll(ctx context.Context, wf *workflow.Workflow) error {
	p.Requests, p.Unknown = []waitingCall{}, []unknownRun{}
	var after store.RequestCursor
	for more := true; more; {
		var page []waitingCall
		err := wf.Store.View(ctx, func(r store.Reader) error {
			page = nil
			requests, err := r.OpenRequests(after, pendingPage)
			if err != nil {
				return err
			}
			more = len(requests) == pendingPage
			for _, req := range requests {
				one, err := waitingOf(r, wf.Policy(), req)
				if err != nil {
					return err
				}
				page = append(page, one)
				after = store.RequestCursor{CreatedAt: req.CreatedAt, ID: req.ID}
			}
			return nil
		})
		if err != nil {
			return cli.CouldNot("the store can't be read: %w", err)
		}
		p.Requests = append(p.Requests, page...)
	}
	err := wf.Store.View(ctx, func(r store.Reader) error {
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
		return cli.CouldNot("the store can't be read: %w", err)
	}
	return nil
}

// mostUnknown limits the listed runs with an unknown outcome.
const mostUnknown = 1000

// readOne reads a request, or a run that needed no request, in any state.
func (p *pending) readOne(ctx context.Context, wf *workflow.Workflow, id string) error {
	err := wf.Store.View(ctx, func(r store.Reader) error {
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
		one, err := waitingOf(r, wf.Policy(), req)
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
		return cli.AnswerNo("there is no request %s; `countersign pending` lists those that wait", visible.Line(id))
	}
	if err != nil {
		return cli.CouldNot("the store can't be read: %w", err)
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
		w.WaitsFor, w.Agreed, w.Quorum = cli.WaitsFor(req), req.At(req.Stage), req.CurrentStage().Quorum
	}
	w.Trouble, err = cardTrouble(r, req)
	return w, err
}

// whereText names the location of a conversation.
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

// cardTrouble describes the cards of a request that people can't see, and says whether they see any.
func cardTrouble(r store.Reader, req approvers.Request) (out []string, err error) {
	if req.State != approvers.Pending {
		return nil, nil
	}
	messages, err := r.OutboxMessagesOf(req.ID)
	if err != nil {
		return nil, err
	}
	seen := req.Bundled() || len(req.QueuedAt) > 0 // in a bundle, or in a card queue
	for _, s := range messages {
		if s.Kind != store.OutboxCard && s.Kind != store.OutboxEscalation {
			continue
		}
		switch {
		case s.State == store.OutboxUnreachable:
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
