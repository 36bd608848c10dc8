package hook

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"countersign/agent/client"
)

// Options has the parameters of Run.
type Options struct {
	Agent   string
	Event   string        // the event's name, for agents whose input lacks it
	Program []string      // the program's path and the words before its commands; empty: the words of countersign
	Timeout time.Duration // the hook's time limit in the agent's settings; zero: the agent's default
	Input   io.Reader
	Getenv  func(string) string

	patience time.Duration // limit for retries while the gateway is unreachable; zero: the default
}

// Answer is the output of the process, and its exit code.
type Answer struct {
	Out  []byte
	Err  string
	Code int

	fault error  // if Code is not zero: why the event could not be handled
	event string // the event's name, if the settings are for another event
}

// blocked is the exit code that means a denial. All agents accept this exit code for an event before a call. Codex and
// Gemini CLI accept it only with a text on the standard error, which is Answer.Err.
const blocked = 2

const (
	longestInput = 16 << 20         // bytes
	reserve      = 15 * time.Second // the hook's deadline is this much earlier than the agent's deadline
	reportTime   = 20 * time.Second // time limit for a report, which delays the agent
	reportTries  = 5 * time.Second  // limit for retries of a report while the gateway is unreachable
	earlierTime  = 3 * time.Second  // time limit for reporting the outcomes of earlier calls
	askTries     = 30 * time.Second
	claimTime    = 10 * time.Second
	withdrawTime = 3 * time.Second // time limit for the last requests, which come after the deadline or the signal to stop
	longestText  = 2000            // characters of an error in a report
)

// hook handles one event.
type hook struct {
	dialect
	Config
	event
	folder   string   // in which the tool works
	program  []string // see Options
	memory   memory
	gate     *client.Client
	patience time.Duration
	http     bool            // the event arrived over HTTP; the end of its context means that the agent has hung up
	args     json.RawMessage // the arguments with the working folder
	call     string          // fingerprint of the tool and of args
	ran      string          // see ranAs; without the working folder, because the agent may report from another folder
}

// Run handles one event. The caller must cancel ctx when the process gets a signal to stop.
func Run(ctx context.Context, o Options) Answer {
	return run(ctx, o, func(h *hook) error { return h.onMachine(o.Getenv) })
}

// onMachine prepares a hook that is a process on the agent's machine.
func (h *hook) onMachine(getenv func(string) string) (err error) {
	if h.Config, err = ReadConfig(getenv); err != nil {
		return err
	}
	if h.gate, err = client.New(h.Address, h.Token); err != nil {
		return err
	}
	h.memory = session(h.State, h.Name, h.session)
	return nil
}

// run handles one event. The function open sets the configuration, the gateway and the memory of the hook.
func run(ctx context.Context, o Options, open func(*hook) error) (answer Answer) {
	start := time.Now()
	d, ok := find(o.Agent)
	if !ok {
		return Answer{Err: fmt.Sprintf("%q is not an agent whose hooks are known", o.Agent), Code: blocked}
	}
	defer func() {
		if p := recover(); p != nil {
			answer = Answer{Out: d.block, Err: fmt.Sprintf("countersign: internal error: %v", p), Code: blocked, fault: fmt.Errorf("internal error: %v", p)}
		}
	}()
	timeout := o.Timeout
	if timeout <= 0 {
		timeout = d.Timeout
	}
	ctx, cancel := context.WithDeadline(ctx, start.Add(timeout-min(reserve, timeout/2)))
	defer cancel()
	raw, err := readInput(ctx, o.Input)
	var e event
	if err == nil {
		e, err = d.read(o.Event, raw)
	}
	other := ""
	if err == nil && o.Event != "" && o.Event != e.name {
		other, err = e.name, fmt.Errorf("the event is %q, and the settings are for %q", e.name, o.Event)
	}
	if err != nil { // the event is unknown, so the exit code is the only reliable answer
		return Answer{Out: d.block, Err: "Countersign denied this call: " + sentence(err.Error()), Code: blocked, fault: err, event: other}
	}
	h := hook{dialect: d, event: e, patience: o.patience, program: o.Program}
	if len(h.program) == 0 {
		h.program = []string{"countersign", "hook"}
	}
	if err := open(&h); err != nil {
		return h.giveUp(err)
	}
	if err := h.prepare(); err != nil {
		return h.giveUp(err)
	}
	h.reportEarlier(ctx)
	switch e.moment {
	case after:
		return h.report(ctx)
	case ended:
		return h.end(ctx)
	}
	if a, ok := h.readReply(); ok {
		return h.answer(ctx, a)
	}
	return h.decide(ctx)
}

// readInput reads the agent's input. If the input has no end, readInput returns an error when ctx ends.
func readInput(ctx context.Context, in io.Reader) ([]byte, error) {
	type input struct {
		raw []byte
		err error
	}
	read := make(chan input, 1)
	go func() {
		raw, err := io.ReadAll(io.LimitReader(in, longestInput+1))
		read <- input{raw, err}
	}()
	select {
	case in := <-read:
		switch {
		case in.err != nil:
			return nil, fmt.Errorf("the agent's input can't be read: %w", in.err)
		case len(in.raw) > longestInput:
			return nil, errors.New("the agent's input is too long")
		}
		return in.raw, nil
	case <-ctx.Done():
		return nil, errors.New("the agent's input has no end")
	}
}

// prepare checks the event.
func (h *hook) prepare() (err error) {
	if h.moment == before && h.Profile != Control || h.moment == permission && h.Profile != Comfort {
		return fmt.Errorf("the event %s does not belong to the profile %s; run: countersign hook doctor", h.name, h.Profile)
	}
	if h.session == "" {
		return errors.New("the agent does not name its session")
	}
	if h.moment == ended {
		return nil
	}
	switch {
	case h.tool == "":
		return errors.New("the agent does not name the tool")
	case h.event.folder == "":
		return errors.New("the agent does not say in which folder the tool works")
	}
	if h.folder, err = h.folderOf(h.input); err != nil {
		return err
	}
	h.tool = h.Name + "." + h.tool
	if h.args, err = withFolder(h.input, h.folder); err != nil {
		return err
	}
	h.call, h.ran = fingerprint(h.tool, string(h.args)), ranAs(h.tool, h.input)
	return nil
}

// folderOf returns the folder in which the tool works with the given arguments. If the arguments name different
// folders, folderOf returns an error, because the agent may use either of them.
func (h *hook) folderOf(args json.RawMessage) (string, error) {
	var values map[string]json.RawMessage
	_ = json.Unmarshal(args, &values) // arguments that are no object name no folder
	names := h.folders[strings.TrimPrefix(h.tool, h.Name+".")]
	folder := ""
	for _, name := range names {
		var own string
		if json.Unmarshal(values[name], &own) != nil || own == "" {
			continue
		}
		if !filepath.IsAbs(own) {
			own = filepath.Join(h.event.folder, own)
		}
		if own = filepath.Clean(own); folder != "" && folder != own {
			return "", fmt.Errorf("the arguments %s name different folders", list(names))
		}
		folder = own
	}
	return cmp.Or(folder, h.event.folder), nil
}

// giveUp returns the answer to an event that could not be handled. An event before a call gets a denial. For an event
// of the permission dialog, the agent's dialog decides. If the configured profile is not the profile of the event, the
// call is denied.
func (h *hook) giveUp(err error) Answer {
	text := cantAsk(err)
	switch {
	case h.moment == permission && h.Profile != Control:
		return Answer{Out: h.leave(h.event, text+" Decide here instead."), Err: text}
	case h.moment == before || h.moment == permission:
		return Answer{Out: h.deny(h.event, text+didNotRun), Err: text}
	}
	return Answer{Out: []byte("{}\n"), Err: text}
}

const didNotRun = " The call was denied and did not run."

func cantAsk(err error) string { return "Countersign can't be asked: " + sentence(err.Error()) }

// decide sends a request for a call to the gateway, and waits for the decision.
func (h *hook) decide(ctx context.Context) Answer {
	fresh := h.freshKey
	for range 3 { // tries again if an earlier request of the call has ended, or if another process has claimed the approval
		answer, again, err := h.attempt(ctx, fresh)
		if err != nil {
			return h.giveUp(err)
		}
		if !again {
			return answer
		}
		fresh = client.NewKey
	}
	return h.giveUp(errors.New("other processes of this session use up the approvals of the same call"))
}

// attempt makes one attempt to get a decision. If this call can't use the record's request, attempt removes the record,
// and the result "again" is true. For example, an earlier call or another process has used the approval, or the request
// has ended.
func (h *hook) attempt(ctx context.Context, fresh func() string) (a Answer, again bool, err error) {
	h.gate.Patience = cmp.Or(h.patience, askTries)
	rec, resumed, err := h.memory.begin(ctx, h, fresh)
	if err != nil {
		return a, false, err
	}
	r, err := h.ask(ctx, rec)
	if err != nil && ctx.Err() != nil && h.Profile == Comfort {
		late, cancel := context.WithTimeout(context.WithoutCancel(ctx), withdrawTime)
		defer cancel()
		// The gateway may have stored the request. ask returns the stored request, because the key is the same, and undecided
		// can withdraw it.
		if r, err := h.ask(late, rec); err == nil {
			return h.undecided(ctx, rec, r), false, nil
		}
	}
	if err != nil {
		return h.notAsked(rec, err)
	}
	if rec.Request != r.ID {
		rec.Request = r.ID
		if err := h.memory.asked(rec); err != nil {
			return a, false, err
		}
	}
	for range 5 { // after each decision, the policy may require more approvals
		r, err = h.gate.Wait(ctx, r, h.asked)
		var pending *client.PendingError
		switch {
		case errors.As(err, &pending):
			return h.undecided(ctx, rec, pending.Request), false, nil
		case err != nil:
			h.memory.leave(rec)
			return a, false, fmt.Errorf("%w (request %s)", err, rec.Request)
		case r.Status == client.Pending:
			h.memory.leave(rec)
			return h.question(r), false, nil
		case r.Lost():
			h.memory.told(ctx, h, rec)
			return h.refused(r), false, nil
		case stale(r, resumed):
			h.memory.drop(rec)
			return a, true, nil
		case r.Status != client.Approved:
			h.memory.drop(rec)
			return h.refused(r), false, nil
		case h.hungUp(ctx):
			return h.undecided(ctx, rec, r), false, nil
		}
		a, err = h.claim(ctx, rec, r)
		switch {
		case err == nil:
			return a, false, nil
		case client.Is(err, client.AlreadyClaimed):
			h.memory.drop(rec)
			return a, true, nil
		case client.Is(err, client.NotApproved):
			if r, err = h.gate.Get(ctx, r.ID, 0); err == nil {
				continue
			}
		}
		h.memory.leave(rec)
		return a, false, fmt.Errorf("%w (request %s)", err, rec.Request)
	}
	h.memory.leave(rec)
	return a, false, fmt.Errorf("the approval of request %s can't be used up", rec.Request)
}

// ask sends the request of a record to the gateway. If the gateway has the request already, ask reads the request.
func (h *hook) ask(ctx context.Context, rec record) (*client.Request, error) {
	if rec.Key == "" {
		return h.gate.Get(ctx, rec.Request, 0)
	}
	return h.gate.Ask(ctx, rec.Key, decideMode, h.request())
}

const decideMode = "decide"

// request returns the call in the form of the gateway.
func (h *hook) request() client.Call {
	call := client.Call{Tool: h.tool, Args: h.args, Accepts: []string{client.Approve, client.Reject}, OnBehalfOf: h.OnBehalfOf, State: h.memory.mark(h)}
	if !h.noEdit {
		call.Accepts = client.All
	}
	return call
}

// freshKey returns the key of a new request. If the agent has an id for the call, the key is the same after a crash.
func (h *hook) freshKey() string {
	if h.id == "" {
		return client.NewKey()
	}
	return fingerprint(h.Name, h.session, h.id)
}

// hungUp reports whether the agent has closed the connection on which it waited for the answer.
func (h *hook) hungUp(ctx context.Context) bool {
	return h.http && errors.Is(ctx.Err(), context.Canceled)
}

// notAsked handles an error of the request to the gateway.
func (h *hook) notAsked(rec record, err error) (a Answer, again bool, _ error) {
	var p *client.Problem
	switch {
	case client.Is(err, client.KeyReused): // the configuration changed since the first request for this call
		h.memory.drop(rec)
		return a, true, nil
	case !errors.As(err, &p) || p.Status >= 500 || p.Name() == "":
		h.memory.leave(rec) // the gateway may have stored the request
		return a, false, err
	}
	h.memory.drop(rec)
	if p.Name() == client.Refused || p.Name() == client.ToolBlocked || p.Name() == client.ToolNotAllowed && h.Profile == Control {
		return Answer{Out: h.deny(h.event, "Countersign's policy refuses this call: "+sentence(cmp.Or(p.Detail, p.Title))+" It did not run.")}, false, nil
	}
	return a, false, err
}

// stale reports whether the call needs a new request. This is the case if an earlier call has used the request, or if
// the call continues a request that has ended without a decision. A rejected request is not stale, because the
// rejection also applies to the repeated call.
func stale(r *client.Request, resumed bool) bool {
	switch r.Status {
	case client.Running, client.Succeeded, client.Failed, client.Unknown:
		return true
	case client.Approved, client.Rejected:
		return false
	}
	return resumed
}

// claim claims the approval, and returns the answer that lets the call run. If the policy approved the call without
// people, the answer lets the agent's own permissions decide. If an approver's edit can't be applied, claim withdraws
// the request, and the answer denies the call.
func (h *hook) claim(ctx context.Context, rec record, r *client.Request) (Answer, error) {
	args, err := r.Approved(h.args)
	if err != nil {
		return Answer{}, err
	}
	var changed json.RawMessage
	if r.Decision != nil && r.Decision.Type == client.Edit {
		if changed, err = h.changed(args); err != nil {
			h.memory.drop(rec)
			h.withdraw(ctx, r.ID, "The edit can't be applied: "+err.Error())
			return Answer{Out: h.deny(h.event, fmt.Sprintf("The edit of an approver can't be applied: %s. The request %s was withdrawn.", err, r.ID))}, nil
		}
	}
	rec.Run = r.Run
	if err := h.memory.claiming(ctx, h, &rec, changed); err != nil {
		return Answer{}, err
	}
	claim, cancel := ctx, context.CancelFunc(func() {})
	if h.http { // otherwise, if the agent hung up during the claim, nobody would know whether the claim succeeded
		claim, cancel = context.WithTimeout(context.WithoutCancel(ctx), claimTime)
	}
	defer cancel()
	if _, err := h.gate.Claim(claim, r); err != nil {
		if errors.Is(err, client.ErrClaimLost) {
			h.notRun(r)
		}
		return Answer{}, err
	}
	if err := h.memory.claimed(rec); err != nil {
		h.notRun(r)
		return Answer{}, err
	}
	if h.hungUp(ctx) {
		h.notRun(r)
		return Answer{}, errHungUp
	}
	if r.Decision != nil && r.Decision.Automatic && h.moment == before {
		return Answer{Out: h.leave(h.event, "")}, nil // no person has seen the call, so the agent's own permissions decide
	}
	return Answer{Out: h.allow(h.event, changed, "Approved by "+roles(r)+" (request "+r.ID+").")}, nil
}

// changed returns the edited arguments, which replace the call's own arguments.
func (h *hook) changed(args json.RawMessage) (json.RawMessage, error) {
	changed, err := withoutFolder(args, h.folder)
	if err != nil {
		return nil, err
	}
	if folder, err := h.folderOf(changed); err != nil || folder != h.folder {
		return nil, errFolderChanged
	}
	if h.noEdit {
		return nil, errors.New("the agent does not accept changed arguments here")
	}
	if name, ok := removed(h.input, changed); ok && h.merges {
		return nil, fmt.Errorf("%s adds changed arguments to its own, so %q can't be removed", h.Title, name)
	}
	return changed, nil
}

// undecided returns the answer to a call that nobody decided before the deadline, or before the agent stopped waiting.
func (h *hook) undecided(ctx context.Context, rec record, r *client.Request) Answer {
	if h.Profile == Comfort && h.hungUp(ctx) { // a later event will say whether the user has answered the dialog
		return Answer{Out: h.leave(h.event, "")}
	}
	if h.Profile == Comfort {
		h.memory.drop(rec)
		if errors.Is(ctx.Err(), context.Canceled) { // agents end the hook when the user has answered the dialog
			h.withdraw(ctx, r.ID, answeredHere)
			return Answer{Out: h.leave(h.event, "")}
		}
		h.withdraw(ctx, r.ID, "It is asked at the agent instead.")
		return Answer{Out: h.leave(h.event, "Nobody decided in Slack in time. Decide here instead.")}
	}
	h.memory.leave(rec)
	return Answer{Out: h.deny(h.event, fmt.Sprintf(
		"Nobody has decided this call yet, so it did not run. The request %s still waits for %s. Repeat the identical call to continue waiting for it.", r.ID, list(r.WaitsFor)))}
}

// errHungUp means that the agent did not wait for the answer.
var errHungUp = errors.New("the agent has hung up")

// refused returns the answer to a call whose request ended without an approval.
func (h *hook) refused(r *client.Request) Answer {
	why := r.Reason
	if r.Decision != nil && r.Decision.Reason != "" {
		why = r.Decision.Reason
	}
	text := map[client.Status]string{
		client.Rejected:  roles(r) + " rejected this call",
		client.Expired:   "Nobody decided this call in time",
		client.Withdrawn: "The request for this call was withdrawn",
		client.Revoked:   "The approval of this call was taken back",
		client.Voided:    "The tool or the policy changed while this call waited",
		client.Denied:    "Countersign's policy refuses this call",
		client.Observed:  "Countersign only observes this tool, and lets no call to it run",
	}[r.Status]
	if text == "" {
		text = "The request for this call is " + string(r.Status)
	}
	if why != "" {
		text += ": " + strings.TrimSuffix(why, ".")
	}
	text += ". It did not run (request " + r.ID + ")."
	if r.Lost() {
		text = "It is not known whether this call ran"
		if why != "" {
			text += ": " + strings.TrimSuffix(why, ".")
		}
		text += " (request " + r.ID + ")."
	}
	if h.Profile == Comfort && r.Status != client.Rejected && r.Status != client.Denied && r.Status != client.Revoked {
		return Answer{Out: h.leave(h.event, text+" Decide here instead.")}
	}
	return Answer{Out: h.deny(h.event, text)}
}

// report reports the outcome of a call to the gateway. If the hook claimed no approval for the call, the user has
// answered the agent's dialog: see withdrawAll.
func (h *hook) report(ctx context.Context) Answer {
	ctx, cancel := context.WithTimeout(ctx, reportTime)
	defer cancel()
	h.gate.Patience = cmp.Or(h.patience, reportTries)
	rec, ok, err := h.memory.ran(ctx, h)
	if err != nil {
		return h.giveUp(err)
	}
	if ok {
		rec.Status = client.Succeeded
		if h.failed {
			rec.Status, rec.Text = client.Failed, shorten(h.text)
		}
		if err := h.send(ctx, rec); err != nil {
			return h.giveUp(errors.Join(err, h.memory.unreported(rec)))
		}
		h.memory.drop(rec)
		return Answer{Out: []byte("{}\n")}
	}
	return h.withdrawAll(ctx, func(r record) bool { return slices.Contains(r.Ran, h.ran) })
}

// send reports the outcome of a record. After an error, the outcome can be reported later.
func (h *hook) send(ctx context.Context, rec record) error {
	_, err := h.gate.Report(ctx, rec.Request, rec.Run, rec.Status, rec.Text)
	var p *client.Problem
	if errors.As(err, &p) && p.Status < 500 && p.Status != http.StatusUnauthorized && p.Status != http.StatusTooManyRequests {
		return nil // the gateway does not need the report, for example because people have already reported an outcome
	}
	return err
}

// reportEarlier reports the outcomes that earlier hooks could not report. If the gateway is unreachable, the hook of
// the next event makes the next attempt. If no attempt succeeds, the workflow asks people for the outcome.
func (h *hook) reportEarlier(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, earlierTime)
	defer cancel()
	h.gate.Patience = 0
	for _, rec := range h.memory.earlier() {
		if h.send(ctx, rec) != nil {
			return
		}
		h.memory.drop(rec)
	}
}

// end handles the end of a turn or a session. In the profile comfort, end withdraws all waiting requests of the
// session.
func (h *hook) end(ctx context.Context) Answer {
	ctx, cancel := context.WithTimeout(ctx, reportTime)
	defer cancel()
	h.gate.Patience = cmp.Or(h.patience, reportTries)
	return h.withdrawAll(ctx, func(record) bool { return true })
}

// withdrawAll withdraws the waiting requests that its last parameter selects, because the user has answered the agent's
// dialog. In the profile control, the agent's dialog decides nothing, so the requests continue to wait.
func (h *hook) withdrawAll(ctx context.Context, which func(record) bool) Answer {
	if h.Profile != Comfort {
		return Answer{Out: []byte("{}\n")}
	}
	list, err := h.memory.waiting(ctx, h)
	if err != nil {
		return h.giveUp(err)
	}
	for _, rec := range list {
		if !which(rec) || rec.Request == "" { // another process is still creating the request
			continue
		}
		if _, err := h.gate.Withdraw(ctx, rec.Request, answeredHere); err != nil && !client.Is(err, client.AlreadyOver) {
			return h.giveUp(err)
		}
		h.memory.drop(rec)
	}
	return Answer{Out: []byte("{}\n")}
}

const answeredHere = "It was answered at the agent."

// withdraw withdraws a request, even if ctx has ended.
func (h *hook) withdraw(ctx context.Context, id, reason string) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), withdrawTime)
	defer cancel()
	h.gate.Patience = 0
	if _, err := h.gate.Withdraw(ctx, id, reason); err != nil {
		return // without a withdrawal, the request expires
	}
}

// notRun is for a call that does not run, although its approval is claimed or may be claimed. notRun reports to the
// gateway that the call did not run. If the gateway answers that the approval is not claimed, notRun withdraws the
// request.
func (h *hook) notRun(r *client.Request) {
	ctx, cancel := context.WithTimeout(context.Background(), withdrawTime)
	defer cancel()
	h.gate.Patience = 0
	if _, err := h.gate.Report(ctx, r.ID, r.Run, client.Failed, "The call did not run: the hook could not confirm the approval."); client.Is(err, client.NotClaimed) {
		h.withdraw(ctx, r.ID, "The hook could not confirm the approval.")
	}
}

// roles lists the roles of the people who decided.
func roles(r *client.Request) string {
	var names []string
	if r.Decision != nil {
		for _, by := range r.Decision.By {
			names = append(names, by.Role)
		}
	}
	if len(names) == 0 {
		return "the policy"
	}
	return list(names)
}

// list joins names in one of these forms: "A", "A and B", "A, B and C". Without names, list returns "a decision".
func list(names []string) string {
	switch n := len(names); n {
	case 0:
		return "a decision"
	case 1:
		return names[0]
	default:
		return strings.Join(names[:n-1], ", ") + " and " + names[n-1]
	}
}

// sentence adds a full stop to a text if the text has none.
func sentence(text string) string {
	if strings.HasSuffix(text, ".") || strings.HasSuffix(text, "?") || strings.HasSuffix(text, "!") {
		return text
	}
	return text + "."
}

// shorten limits the length of a text.
func shorten(text string) string {
	if r := []rune(text); len(r) > longestText {
		return string(r[:longestText-1]) + "…"
	}
	return text
}
