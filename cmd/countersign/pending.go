package main

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"countersign/approvers"
	"countersign/approvers/workflow"
	"countersign/approvers/workflow/settings"
	"countersign/bot/render/argument"
	"countersign/cmd/countersign/cli"
	"countersign/cmd/countersign/task"
	"countersign/internal/visible"
	"countersign/store"
)

func pendingCommand() *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "pending [REQUEST]",
		Short: "Lists what waits for people, and what somebody must check",
		Long: `Lists what waits for a decision, what was approved and has not run, and runs with an unknown outcome. With the id of a request it shows the
whole request, as a person who decides it at the command line has to see it. Characters that a terminal would hide or obey are written as ⟨…⟩.

It works while the bot runs, and on the store of a stopped bot. docs/operate.md says what to do next.`,
		Example: `  countersign pending req_7ABCDEFGHIJK`,
		Args:    cli.Args(0, 1),
		RunE: func(cmd *cobra.Command, args []string) error {
			id := ""
			if len(args) == 1 {
				id = args[0]
			}
			found, raw, err := askPending(cmd.Context(), id, cmd.ErrOrStderr())
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

// askPending runs pendingTask and parses its output. If the bot is held, askPending writes a warning.
func askPending(ctx context.Context, id string, warnings io.Writer) (found pending, raw []byte, err error) {
	var out bytes.Buffer
	if err := pendingTask.DoWarned(ctx, id, &out, warnings); err != nil {
		return found, nil, err
	}
	if found, err = parsePending(out.Bytes()); err != nil {
		return found, nil, cli.CouldNot("open requests can't be read: %w", err)
	}
	return found, out.Bytes(), nil
}

// parsePending parses the output of pendingTask. Go's JSON encoder changes spaces and the characters <, > and & in raw
// JSON. Therefore parsePending takes a request's exact arguments from the field Run, which has them as text.
func parsePending(raw []byte) (found pending, err error) {
	err = json.Unmarshal(raw, &found)
	for _, w := range found.Requests {
		if w.Request != nil && w.Run != nil {
			w.Request.Args = json.RawMessage(w.Run.Args)
		}
	}
	return found, err
}

// pendingTask writes JSON: all waiting items, or the request or run with the given id.
var pendingTask = task.Task[string]{Name: "pending", WhileHeld: true, Run: func(ctx context.Context, w task.Env, id string) error {
	wf, err := w.Workflow()
	if err != nil {
		return err
	}
	p := pending{Now: wf.Now()}
	pause, err := wf.Views.Paused(ctx)
	if err != nil {
		return cli.CouldNot("the store can't be read: %w", err)
	}
	if pause.On {
		p.Paused = &pause
	}
	if p.Refused, err = wf.Views.Refusals(ctx); err != nil {
		return cli.CouldNot("the store can't be read: %w", err)
	}
	if id != "" {
		err = p.readOne(ctx, wf, id)
	} else {
		err = p.readAll(ctx, wf)
	}
	if err != nil {
		return err
	}
	return json.NewEncoder(w.Out).Encode(p)
}}

// pending lists the items that wait for people, or for their run. If the operator asked for one id, pending has only
// this item.
type pending struct {
	Now      time.Time       `json:"now"`
	Paused   *settings.Pause `json:"paused,omitempty"` // nil: not paused
	Requests []waitingCall   `json:"requests"`
	Unknown  []unknownRun    `json:"unknown"` // runs with an unknown outcome; or, in any state, the run with the given id
	// Refused lists the features that Slack refuses in this workspace.
	Refused []settings.Refusal `json:"slack_refuses,omitempty"`
	// Undelivered lists the messages that the bot can't deliver, delete or handle, because Slack refuses a call.
	Undelivered undelivered `json:"undelivered,omitzero"`
}

// waitingCall is a request that waits for people or for its run.
type waitingCall struct {
	ID         string             `json:"id"`
	State      approvers.State    `json:"state"`
	Tool       string             `json:"tool"`
	Risk       string             `json:"risk"`
	What       string             `json:"what"` // the call's effect in one sentence
	Asker      approvers.PersonID `json:"asker"`
	AskerName  string             `json:"asker_name"`
	Where      string             `json:"where"`
	Stage      int                `json:"stage"` // number of the current stage, from 1
	Stages     []string           `json:"stages"`
	WaitsFor   string             `json:"waits_for"` // who can decide now
	Agreed     int                `json:"agreed"`
	Quorum     int                `json:"quorum"`
	Since      time.Time          `json:"since"`
	Until      time.Time          `json:"until"` // deadline after which the request is rejected, or the call can't run any more
	Digest     string             `json:"digest"`
	BreakGlass bool               `json:"break_glass"` // the operator may approve the request in place of the approvers
	Trouble    []string           `json:"trouble,omitempty"`

	Request *approvers.Request `json:"request,omitempty"` // the whole request, if the operator asked for it by id
	Run     *unknownRun        `json:"run,omitempty"`     // the run, if the operator asked for it by id
}

// unknownRun describes a run. Usually the run's outcome is unknown.
type unknownRun struct {
	Execution string                   `json:"execution"`
	State     approvers.ExecutionState `json:"state"`
	Request   string                   `json:"request,omitempty"`
	Tool      string                   `json:"tool"`
	Args      string                   `json:"args"`
	Where     string                   `json:"where"`
	Started   time.Time                `json:"started"`
	Until     time.Time                `json:"until,omitzero"` // time at which the agent is told that the outcome is unknown
	Result    string                   `json:"result,omitempty"`
	By        approvers.PersonID       `json:"reported_by,omitempty"`
}

// pendingPage is the number of requests that one read transaction reads.
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
	if err == nil {
		p.Undelivered, err = readUndelivered(ctx, wf)
	}
	if err != nil {
		return cli.CouldNot("the store can't be read: %w", err)
	}
	return nil
}

// mostUnknown limits the number of listed runs with an unknown outcome.
const mostUnknown = 1000

// readOne reads one request in any state. If the id belongs to a run that needed no request, readOne reads the run.
func (p *pending) readOne(ctx context.Context, wf *workflow.Workflow, id string) error {
	recorded := false // the history has records with this id
	err := wf.Store.View(ctx, func(r store.Reader) error {
		p.Requests, p.Unknown = []waitingCall{}, []unknownRun{}
		_, head := r.AuditHead(id)
		recorded = !errors.Is(head, store.ErrNotFound)
		e, err := r.Execution(id)
		switch {
		case err == nil && e.Request == "":
			one, err := runOf(r, e)
			if err != nil {
				return err
			}
			leave, err := r.Timer(store.TimerLeave, e.ID) // exists only while the outcome is unknown
			one.Until = leave.Due
			p.Unknown = append(p.Unknown, one)
			return store.IgnoreNotFound(err)
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
	switch {
	case errors.Is(err, store.ErrNotFound) && recorded:
		return cli.AnswerNo("the store has only the history of the request %s: retention removed the request, or its record was lost. Nobody can decide it any more; "+
			"`countersign audit list --request %s` shows what happened to it", visible.Line(id), visible.Line(id))
	case errors.Is(err, store.ErrNotFound):
		return cli.AnswerNo("there is no request %s; `countersign pending` lists those that wait", visible.Line(id))
	case err != nil:
		return cli.CouldNot("the store can't be read: %w", err)
	}
	return nil
}

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
		w.Stages = append(w.Stages, cli.StageWords(p, s))
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

// whereText names the channel or the direct messages of a conversation.
func whereText(c store.Conversation) string {
	switch {
	case c.ID == "":
		return "a conversation that was erased"
	case c.Caller != nil:
		return "the client " + c.Caller.Caller.Name
	case c.DM:
		return "a direct message"
	case c.Name != "":
		return "#" + c.Name
	}
	return "the channel " + c.Channel
}

// onHomeTab is the advice on where a request without a card can be decided.
const onHomeTab = "people who may decide it find it on the app's Home tab"

// cardTrouble describes those cards of a request that people can't see. If people can't see any of its cards,
// cardTrouble adds a line of advice.
func cardTrouble(r store.Reader, req approvers.Request) (out []string, err error) {
	if req.State != approvers.Pending {
		return nil, nil
	}
	messages, err := r.OutboxMessagesOf(req.ID)
	if err != nil {
		return nil, err
	}
	switch {
	case approvers.HasNobodyLeft(req):
		out = append(out, "Nobody is left who may decide it, since "+cli.Moment(req.Unreached.Since)+": add people to its roles, or reject it")
	case approvers.HasTooFew(req):
		out = append(out, fmt.Sprintf("It needs %d people who approve, and only %d can, since %s: add people to its roles, or reject it",
			req.CurrentStage().Quorum, req.Unreached.Able, cli.Moment(req.Unreached.Since)))
	case req.ReachesNobody():
		out = append(out, "Slack shows it to nobody since "+cli.Moment(req.Unreached.Since)+" ("+visible.Line(req.Unreached.Cause)+"); "+onHomeTab)
	}
	// seen is true if people see a card, or if no line about a missing card is needed: the request is in a bundle or a
	// card queue, or was reported above.
	seen := req.Bundled() || len(req.QueuedAt) > 0 || req.ReachesNobody()
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
		out = append(out, "no card is in Slack yet; "+onHomeTab)
	}
	return out, nil
}

// print lists all waiting items. If the parameter whole is true, print prints the only item in full.
func (p pending) print(out io.Writer, whole bool) {
	if p.Paused != nil {
		fmt.Fprintf(out, "Everything has been paused by %s since %s: %s\n\n", visible.Line(string(p.Paused.By)), cli.Moment(p.Paused.At), visible.Line(p.Paused.Reason))
	}
	for i, r := range p.Requests {
		if i > 0 {
			fmt.Fprintln(out)
		}
		if whole {
			p.printWhole(out, r)
		} else {
			p.printBrief(out, r)
		}
	}
	for i, u := range p.Unknown {
		if i > 0 || len(p.Requests) > 0 {
			fmt.Fprintln(out)
		}
		u.print(out, whole)
	}
	trouble := p.Undelivered.lines()
	switch waits := len(p.Requests)+len(p.Unknown) > 0; {
	case !waits && len(trouble) == 0:
		fmt.Fprintln(out, "Nothing waits.")
	case !waits:
		fmt.Fprintln(out, "Nothing waits for a decision.")
	case len(trouble) > 0:
		fmt.Fprintln(out)
	}
	for _, line := range trouble {
		fmt.Fprintf(out, "! %s\n", line)
	}
	for _, r := range p.Refused {
		fmt.Fprintf(out, "! Slack refuses %s\n", refusalLine(r))
	}
}

// runWords describes the states of a run.
var runWords = map[approvers.ExecutionState]string{
	approvers.ExecutionNone: "has not started", approvers.ExecutionExecuting: "is running", approvers.ExecutionSucceeded: "succeeded",
	approvers.ExecutionFailed: "failed", approvers.ExecutionUnknown: "it is unknown whether it happened",
}

// print prints a run. If the parameter whole is true, print also prints its arguments and its result.
func (u unknownRun) print(out io.Writer, whole bool) {
	fmt.Fprintf(out, "%s · %s · %s\n", u.Execution, visible.Line(u.Tool), runWords[u.State])
	if u.State != approvers.ExecutionNone {
		until := ""
		if !u.Until.IsZero() {
			until = "; the agent is told that the outcome is unknown at " + cli.Moment(u.Until)
		}
		fmt.Fprintf(out, "  started %s for %s%s\n", cli.Moment(u.Started), visible.Line(u.Where), until)
	}
	if u.Request != "" {
		fmt.Fprintf(out, "  of request %s\n", u.Request)
	}
	if u.By != "" {
		fmt.Fprintf(out, "  reported by %s\n", visible.Line(string(u.By)))
	}
	if whole {
		printArguments(out, []byte(u.Args))
		if u.Result != "" {
			fmt.Fprintf(out, "Result: %s\n", visible.Line(u.Result))
		}
	}
	if u.State == approvers.ExecutionUnknown {
		fmt.Fprintf(out, "  once you know: countersign report %s happened|did-not --reason …\n", u.Execution)
	}
}

func (p pending) printBrief(out io.Writer, r waitingCall) {
	fmt.Fprintf(out, "%s · %s · %s risk · %s\n", r.ID, visible.Line(r.Tool), r.Risk, r.stands())
	fmt.Fprintf(out, "  %s\n", visible.Line(r.does()))
	fmt.Fprintf(out, "  asked by %s in %s, %s\n", visible.Line(r.asker()), visible.Line(r.Where), cli.Moment(r.Since))
	fmt.Fprintf(out, "  %s\n", p.deadline(r))
	for _, t := range r.Trouble {
		fmt.Fprintf(out, "  ! %s\n", visible.Line(t))
	}
}

// The method "stands" describes the current state of a request.
func (r waitingCall) stands() string {
	switch r.State {
	case approvers.Pending:
		text := "waits for " + visible.Line(r.WaitsFor)
		if len(r.Stages) > 1 {
			text += fmt.Sprintf(", stage %d of %d", r.Stage, len(r.Stages))
		}
		if r.Quorum > 1 {
			text += fmt.Sprintf(", %d of %d agreed", r.Agreed, r.Quorum)
		}
		return text
	case approvers.Approved:
		return "approved, not run yet"
	}
	return string(r.State)
}

func (r waitingCall) does() string { return cmp.Or(r.What, "runs "+r.Tool) }

func (r waitingCall) asker() string {
	return strings.TrimSpace(r.AskerName + " (" + string(r.Asker) + ")")
}

// deadline describes when and how the request ends without a decision.
func (p pending) deadline(r waitingCall) string {
	left := r.Until.Sub(p.Now)
	switch {
	case r.State == approvers.Approved && left <= 0:
		return "it was to be run by " + cli.Moment(r.Until) + ", and will not run any more"
	case r.State == approvers.Approved:
		return "to be run by " + cli.Moment(r.Until) + ", in " + cli.Duration(left)
	case left <= 0:
		return "its time ended at " + cli.Moment(r.Until) + ": nobody can decide it any more"
	}
	return "waits until " + cli.Moment(r.Until) + ", for another " + cli.Duration(left)
}

// printWhole prints all facts about a request that an approver has to see.
func (p pending) printWhole(out io.Writer, w waitingCall) {
	r := *w.Request
	row := func(name, text string) { fmt.Fprintf(out, "%-10s %s\n", name, text) }
	row("Request", w.ID+", "+w.stands())
	row("What", visible.Line(w.does()))
	if r.PreviewFault != "" {
		row("", "! the policy's preview could not be made: "+visible.Line(r.PreviewFault))
	}
	switch f := r.ToolPreview; {
	case f.Making():
		row("", "! a preview is being made by "+visible.Line(f.By))
	case f != nil && f.State == approvers.ToolPreviewFailed:
		row("", "! the preview could not be made: "+visible.Line(f.Fault))
	case f != nil && f.Text != "":
		row("", visible.Line(f.By)+" says of it: "+visible.Line(f.Text))
	}
	row("Tool", fmt.Sprintf("%s, %s risk; %s", visible.Line(w.Tool), w.Risk, effectWords[r.Effect]))
	row("Asked by", visible.Line(w.asker())+" in "+visible.Line(w.Where)+", "+cli.Moment(w.Since))
	for _, who := range r.Facts.Requesters {
		if who != r.Facts.Asker {
			row("", "and "+visible.Line(string(who)))
		}
	}
	row("Words", quoteText(r))
	row("Why", visible.Line(strings.Join(r.Plan.Why, "; ")))
	for i, s := range w.Stages {
		name := ""
		if i == 0 {
			name = "Stages"
		}
		here := ""
		if i == r.Stage && r.State == approvers.Pending {
			for _, joined := range append(slices.Clone(r.Joined), invitedNames(r)...) {
				here += " or " + visible.Line(joined)
			}
			here += " ← now"
		}
		row(name, fmt.Sprintf("%d. %s%s", i+1, visible.Line(s), here))
	}
	if r.State.Open() {
		row("Deadline", p.deadline(w))
	} else {
		row("Ended", endText(r))
	}
	printHistory(out, r)
	for _, t := range w.Trouble {
		row("Trouble", visible.Line(t))
	}
	if w.Run != nil && w.Run.State != approvers.ExecutionNone {
		row("Run", w.Run.Execution+", "+string(w.Run.State)+", started "+cli.Moment(w.Run.Started))
	}
	if r.Erased() {
		row("Arguments", "erased: \"countersign audit list --long --request "+w.ID+"\" says when and by whom")
	} else {
		printArguments(out, r.Args)
	}
	row("Digest", w.Digest)
	fmt.Fprintln(out)
	if !r.State.Open() || !p.Now.Before(w.Until) {
		return
	}
	fmt.Fprintf(out, "To stop it:     countersign decide %s reject --reason …\n", w.ID)
	if r.State == approvers.Pending && w.BreakGlass {
		fmt.Fprintf(out, "To approve it in place of everybody who is asked:\n                countersign decide %s approve --digest %s --reason …\n", w.ID, w.Digest[:shownDigest])
	} else if r.State == approvers.Pending {
		fmt.Fprintln(out, "It can't be approved here: the policy has no break_glass: true for this tool.")
	}
}

// quoteText quotes the message that led to the request.
func quoteText(r approvers.Request) string {
	if r.Facts.Quote == "" && r.Erased() {
		return "erased"
	}
	return "“" + visible.Line(r.Facts.Quote) + "”"
}

// endText describes when and why a request ended, and who ended it.
func endText(r approvers.Request) string {
	text := cli.Moment(r.ClosedAt)
	if r.ClosedBy != "" {
		text += ", by " + strings.TrimSpace(r.ClosedName+" ("+string(r.ClosedBy)+")")
	}
	if r.Reason != "" {
		text += ": " + r.Reason
	}
	return visible.Line(text)
}

// effectWords has texts that describe the effect of a second run.
var effectWords = map[approvers.Effect]string{
	approvers.ReadOnly: "it changes nothing", approvers.Idempotent: "it acts once, also when it is run again", approvers.Unprotected: "it acts each time it is run",
}

func invitedNames(r approvers.Request) []string {
	var out []string
	for _, i := range r.Invited {
		out = append(out, i.Name)
	}
	return out
}

func printHistory(out io.Writer, r approvers.Request) {
	type entry struct {
		at   time.Time
		text string
	}
	var all []entry
	for _, d := range r.Decisions {
		text := fmt.Sprintf("%s: %s", d.Name, d.Kind)
		if d.Role != "" {
			text = fmt.Sprintf("%s (%s): %s", d.Name, d.Role, d.Kind)
		}
		text += fmt.Sprintf(" at stage %d", d.Stage+1)
		if d.BreakGlass {
			text += ", in place of everybody who was asked"
		}
		if d.Fallen {
			text += ", no longer counts"
		}
		if d.Reason != "" {
			text += ": " + d.Reason
		}
		all = append(all, entry{d.At, text})
	}
	for _, m := range r.Remarks {
		text := fmt.Sprintf("%s: %s: %s", m.Name, m.Kind, m.Text)
		if m.MessageEdit != nil {
			text += map[bool]string{true: " (deleted later)", false: " (edited later)"}[m.MessageEdit.Deleted]
		}
		all = append(all, entry{m.At, text})
	}
	for _, e := range r.Edits {
		all = append(all, entry{e.At, fmt.Sprintf("%s (%s) changed the arguments, which were %s", e.Name, e.Role, e.Before)})
	}
	slices.SortStableFunc(all, func(a, b entry) int { return a.at.Compare(b.at) })
	for i, e := range all {
		name := ""
		if i == 0 {
			name = "So far"
		}
		fmt.Fprintf(out, "%-10s %s  %s\n", name, cli.Moment(e.at), visible.Line(e.text))
	}
}

// printArguments prints the exact arguments in full.
func printArguments(out io.Writer, args []byte) {
	fmt.Fprintln(out, "Full arguments, as they are sent to the tool:")
	for line := range strings.Lines(argument.Text(args) + "\n") {
		fmt.Fprint(out, "  ", line)
	}
}

// plainJSON escapes the character DEL and all characters that are not ASCII, because a terminal could interpret or hide
// some of them. In JSON texts, the other control characters are already escaped.
func plainJSON(raw []byte) []byte {
	out := make([]byte, 0, len(raw))
	for _, r := range string(raw) {
		switch {
		case r < 0x7f:
			out = append(out, byte(r))
		case r > 0xffff:
			r -= 0x10000
			out = fmt.Appendf(out, `\u%04x\u%04x`, 0xd800+r>>10, 0xdc00+r&0x3ff)
		default:
			out = fmt.Appendf(out, `\u%04x`, r)
		}
	}
	return out
}
