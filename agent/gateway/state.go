package gateway

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"countersign/approvers"
	"countersign/approvers/workflow/view"
)

// state is the caller's view of a request. state names approvers only by their roles.
type state struct {
	ID          string     `json:"id"`
	Status      string     `json:"status"`
	Mode        string     `json:"mode"`
	Tool        string     `json:"tool"`
	ArgsHash    string     `json:"args_sha256"`
	CreatedAt   time.Time  `json:"created_at"`
	WaitsFor    []string   `json:"waits_for,omitempty"`
	ExpiresAt   time.Time  `json:"expires_at,omitzero"`
	Decision    *decision  `json:"decision,omitempty"`
	Reason      string     `json:"reason,omitempty"`
	Receipt     string     `json:"receipt,omitempty"`
	Run         string     `json:"run,omitempty"`
	RunBefore   time.Time  `json:"run_before,omitzero"`
	ReportBy    time.Time  `json:"report_by,omitzero"`
	Result      string     `json:"result,omitempty"`
	Disposition string     `json:"disposition,omitempty"`
	Questions   []question `json:"questions,omitempty"`
	State       string     `json:"state,omitempty"`

	etag string
	lost bool // the records of the run are lost, so the status stays unknown
}

type decision struct {
	Type      string          `json:"type"`
	Automatic bool            `json:"automatic,omitempty"`
	Args      json.RawMessage `json:"-"` // arguments of an edit; see the method json
	ArgsJSON  string          `json:"args_json,omitempty"`
	Changed   []string        `json:"changed,omitempty"`
	By        []role          `json:"by"`
	Reason    string          `json:"reason,omitempty"`
	At        time.Time       `json:"at,omitzero"`
}

type role struct {
	Role string `json:"role"`
}

type question struct {
	Question int    `json:"question"`
	Text     string `json:"text"`
	By       string `json:"by"`
	Answer   string `json:"answer,omitempty"`
}

// The dispositions of a request, with the names of MCP's draft SEP-2848.
const (
	executed  = "approved-executed"
	denied    = "denied-not-executed"
	failed    = "execution-error"
	uncertain = "outcome-unknown"
)

// settled reports whether the caller need not wait any longer: the request is not pending any more and, in the mode
// execute, the call's run has ended or will never begin.
func (s state) settled() bool {
	switch s.Status {
	case string(approvers.Pending):
		return false
	case string(approvers.Approved), view.CallerRunning:
		return s.Mode == string(approvers.DecideMode)
	}
	return true
}

// over reports whether the request is in its last state.
func (s state) over() bool {
	return s.lost || !slices.Contains([]string{string(approvers.Pending), string(approvers.Approved), view.CallerRunning, view.CallerUnknown}, s.Status)
}

// write sends the state as the answer.
func (s state) write(w http.ResponseWriter, status int) error {
	extend(w)
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("ETag", s.etag)
	w.WriteHeader(status)
	_, err := w.Write(s.json())
	return sent(err)
}

// json returns the state as JSON. The arguments of an edit keep their exact bytes, because args_sha256 is the hash of
// these bytes. A JSON encoder would remove white space from the arguments, so json inserts the arguments after the
// encoding.
func (s state) json() []byte {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(s); err != nil {
		panic(err) // encoding texts, numbers and times can't fail
	}
	out := bytes.TrimSuffix(b.Bytes(), []byte("\n"))
	if s.Decision == nil || s.Decision.Args == nil {
		return out
	}
	const begin = `"decision":{` // matches only the member decision, because quotation marks in texts are escaped
	return bytes.Replace(out, []byte(begin), slices.Concat([]byte(begin+`"args":`), s.Decision.Args, []byte{','}), 1)
}

// stateOf makes the caller's view of a request.
func (g *Gateway) stateOf(c view.CallerRequest) (state, error) {
	own := c.Conversation.Caller
	s := state{
		ID: own.Request, Mode: string(own.Caller.Mode), Tool: c.Call.Tool, ArgsHash: hashOf([]byte(c.Call.Args)), CreatedAt: c.Call.CreatedAt, State: own.ClientState,
	}
	s.Status = c.Status()
	s.lost = s.Status == view.CallerUnknown && c.Lost()
	if e := c.Execution; e != nil {
		s.ArgsHash = hashOf(e.Args)
		if own.Caller.Decides() {
			s.Run = e.ID
		}
		s.run(*e)
	}
	if r := c.Request; r != nil {
		s.asked(c.Policy, *r)
		if !own.Caller.Decides() { // only callers that run the tool need the secrets that an approver wrote
			s.Decision.mask(r.Secrets)
		}
	} else if e := c.Execution; e != nil && (s.Status == string(approvers.Approved) || e.State != approvers.ExecutionNone && !presumed(*e)) {
		s.Decision = &decision{Type: "approve", Automatic: true, By: []role{}}
	}
	var told struct {
		Reason string `json:"reason"`
	}
	if c.Call.Outcome != "" && s.Reason == "" && s.Result == "" && json.Unmarshal([]byte(c.Call.Result), &told) == nil {
		s.Reason = told.Reason
	}
	switch {
	case s.Status == view.CallerRunning:
		s.ReportBy = c.ReportBy
	case s.Status == string(approvers.Approved) && c.Request == nil:
		s.RunBefore = c.ReportBy
	}
	switch {
	case c.Lost():
		s.Disposition = uncertain
	case s.over() && s.Disposition == "":
		s.Disposition = denied
	}
	sum := sha256.Sum256(s.json())
	// The ETag is computed without the receipt, because each replica signs receipts with its own key.
	s.etag = strconv.Quote(hex.EncodeToString(sum[:12]))
	var err error
	if s.needsReceipt(c) {
		s.Receipt, err = g.receipt(c, s)
	}
	return s, err
}

// needsReceipt reports whether the caller gets a receipt: it may run the call, or is running it. If the request is
// damaged, the times of the receipt are lost.
func (s *state) needsReceipt(c view.CallerRequest) bool {
	if !c.Conversation.Caller.Caller.Decides() || c.Execution == nil || c.Request != nil && c.Request.Damaged {
		return false
	}
	return s.Status == string(approvers.Approved) || s.Status == view.CallerRunning
}

// mask masks the secret values in the arguments of an edit. Masked arguments are not the bytes of args_sha256, so mask
// removes args_json.
func (d *decision) mask(secrets []string) {
	if d == nil || d.Args == nil || len(secrets) == 0 {
		return
	}
	var args map[string]any
	numbers := json.NewDecoder(bytes.NewReader(d.Args))
	numbers.UseNumber() // a float64 would change large numbers
	err := numbers.Decode(&args)
	if err == nil {
		d.Args, err = json.Marshal(approvers.MaskValues(args, secrets))
	}
	if err != nil { // approved arguments are always a JSON object
		d.Args = json.RawMessage("{}")
	}
	d.ArgsJSON = ""
}

// presumed reports whether the record of a run was lost, and nobody has reported the outcome since. The client may not
// have claimed the call, so it is not told that the call was approved.
func presumed(e approvers.Execution) bool {
	return e.State == approvers.ExecutionUnknown && e.Loss == approvers.LossDamaged
}

// run adds the outcome of the run to the state.
func (s *state) run(e approvers.Execution) {
	switch e.State {
	case approvers.ExecutionSucceeded:
		s.Result, s.Disposition = e.Result, executed
	case approvers.ExecutionFailed:
		s.Result, s.Disposition = e.Result, failed
		if e.Unrun {
			s.Reason, s.Result, s.Disposition = e.Result, "", denied
		}
	case approvers.ExecutionUnknown:
		s.Disposition = uncertain
	}
}

// asked adds the approvers' questions and decisions in a request to the state.
func (s *state) asked(p *approvers.Policy, r approvers.Request) {
	for i, m := range r.Remarks {
		if m.Kind != approvers.Question {
			continue
		}
		q := question{Question: r.Retry.EarlierRemarks() + i, Text: m.Text, By: titleOf(p, m.Role)}
		if a := slices.IndexFunc(r.Remarks, func(a approvers.Remark) bool { return a.Kind == approvers.Answer && a.To == i }); a >= 0 {
			q.Answer = r.Remarks[a].Text
		}
		s.Questions = append(s.Questions, q)
	}
	switch r.State {
	case approvers.Pending:
		s.WaitsFor, s.ExpiresAt = waitsFor(p, r), r.ExpiresAt
	case approvers.Approved, approvers.Consumed:
		if r.Damaged { // the approvals are lost, or there were none
			return
		}
		if s.Status == string(approvers.Approved) {
			s.RunBefore = r.RunBy
		}
		s.Decision = &decision{Type: "approve", By: []role{}, At: r.ClosedAt}
		for _, d := range r.ValidApprovals() {
			title := titleOf(p, d.Role)
			if d.BreakGlass {
				title = "Operator"
			}
			if one := (role{title}); !slices.Contains(s.Decision.By, one) {
				s.Decision.By = append(s.Decision.By, one)
			}
		}
		if n := len(r.Edits); n > 0 {
			s.Decision.Type, s.Decision.Args, s.Decision.ArgsJSON, s.Decision.Reason = "edit", r.Args, string(r.Args), r.Edits[n-1].Reason
			s.Decision.Changed = changed(r.Edits[0].Before, r.Args)
		}
	case approvers.Rejected:
		title := titleOf(p, r.ClosedRole)
		if r.ClosedBy.Login() != "" {
			title = "Operator"
		}
		s.Decision = &decision{Type: "reject", By: []role{{title}}, Reason: r.Reason, At: r.ClosedAt}
		s.Reason = r.Reason
	default:
		s.Reason = r.Reason
	}
}

// waitsFor returns the titles of the roles that may decide the current stage.
func waitsFor(p *approvers.Policy, r approvers.Request) []string {
	out := []string{r.CurrentStage().Title(p)}
	for _, name := range r.Joined {
		if title := titleOf(p, name); !slices.Contains(out, title) {
			out = append(out, title)
		}
	}
	return out
}

func titleOf(p *approvers.Policy, name string) string {
	if role, ok := p.Role(name); ok {
		return role.Title
	}
	return name
}

func hashOf(b []byte) string {
	sum := sha256.Sum256(b)
	return hex.EncodeToString(sum[:])
}

// changed compares two JSON objects. It returns JSON pointers to the members that were added, removed or changed. If a
// changed member is an object before and after, changed names the members within this object instead.
func changed(before, after json.RawMessage) []string {
	return differences("", before, after)
}

func differences(path string, before, after json.RawMessage) []string {
	var a, b map[string]json.RawMessage
	if json.Unmarshal(before, &a) != nil || json.Unmarshal(after, &b) != nil || a == nil || b == nil {
		if approvers.EqualArgs(before, after) {
			return nil
		}
		return []string{path}
	}
	var names []string
	for name := range a {
		names = append(names, name)
	}
	for name := range b {
		if _, both := a[name]; !both {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	var out []string
	for _, name := range names {
		at := path + "/" + strings.NewReplacer("~", "~0", "/", "~1").Replace(name)
		x, had := a[name]
		y, has := b[name]
		if !had || !has {
			out = append(out, at)
			continue
		}
		out = append(out, differences(at, x, y)...)
	}
	return out
}
