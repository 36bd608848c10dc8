package auditcmd

import (
	"bytes"
	"cmp"
	"context"
	"encoding/csv"
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"countersign/approvers"
	"countersign/approvers/audit"
	"countersign/approvers/workflow"
	"countersign/cmd/countersign/auditreport"
	"countersign/cmd/countersign/cli"
	"countersign/cmd/countersign/task"
	"countersign/store"
)

// reportPolicy has two rules. One of them never matches.
var reportPolicy = &approvers.Policy{Hash: "0123456789abcdef", Tools: []approvers.ToolPolicy{
	{Name: "issue_refund", Risk: approvers.High, Rules: []approvers.Rule{
		{When: approvers.Condition{Text: "args.amount > 500"}}, {When: approvers.Condition{Text: `args.currency != "USD"`}},
	}},
	{Name: "send_email", Risk: approvers.Medium, Grants: approvers.GrantTerms{Uses: 5, Within: time.Hour}},
	{Name: "lookup_order", Risk: approvers.Low},
}}

// reportWriter writes chains into a store.
type reportWriter struct {
	t  *testing.T
	tx store.Tx
	at time.Time
}

func (w *reportWriter) add(chain string, after time.Duration, kind approvers.AuditKind, who approvers.PersonID, payload string, facts ...string) {
	w.t.Helper()
	w.at = w.at.Add(after)
	last, err := w.tx.AuditHead(chain)
	if store.IgnoreNotFound(err) != nil {
		w.t.Fatal(err)
	}
	a := approvers.AuditRecord{Chain: chain, At: w.at, Kind: kind, Actor: who, Facts: map[string]string{}}
	for _, f := range facts {
		name, value, _ := strings.Cut(f, "=")
		a.Facts[name] = value
	}
	var p *approvers.AuditPayload
	if payload != "" {
		p = &approvers.AuditPayload{Chain: chain, Salt: make([]byte, 16), Body: []byte(payload)}
		a.PayloadHash = p.Hash()
	}
	a = a.Link(last)
	if p != nil {
		p.Seq = a.Seq
	}
	if err := w.tx.AppendAudit(a, p); err != nil {
		w.t.Fatal(err)
	}
}

// ask adds a request that Teo was asked about.
func (w *reportWriter) ask(id, tool string, facts ...string) {
	w.t.Helper()
	r := approvers.Request{ID: id, State: approvers.Consumed, CreatedAt: w.at, ExpiresAt: w.at, Decisions: []approvers.Decision{
		{By: "T0001/U0002", Name: "Teo"}, {By: "T0001/U0003", Name: "<script>alert(1)</script>\x1b[31m"},
	}}
	if err := w.tx.PutRequest(r); err != nil {
		w.t.Fatal(err)
	}
	w.add(id, time.Hour, approvers.AuditProposed, "", "{}", append([]string{"tool=" + tool, "verdict=ask", "stages=team-lead"}, facts...)...)
	w.add(id, time.Second, approvers.AuditShown, "", "", "surface=card", "to=user:U0002", "channel=D1")
}

func (w *reportWriter) decide(id string, took time.Duration, who approvers.PersonID, kind approvers.DecisionKind, role, reason string) {
	w.t.Helper()
	w.add(id, took, approvers.AuditDecided, who, fmt.Sprintf(`{"reason":%q}`, reason), "kind="+string(kind), "role="+role, fmt.Sprintf("took=%d", took.Milliseconds()))
	if kind == approvers.Approve {
		w.add(id, 0, approvers.AuditApproved, "", "")
		w.add(id, time.Second, approvers.AuditExecuting, "", "", "try=1")
		w.add(id, time.Second, approvers.AuditExecuted, "", "", "state=succeeded")
	} else {
		w.add(id, 0, approvers.AuditClosed, who, "", "state=rejected")
	}
}

// The function "reported" fills a store with a small history, and returns the end of the period that the history
// covers.
func reported(t *testing.T, s store.Store) (until time.Time) {
	t.Helper()
	large := reportPolicy.Tools[0].Rules[0].ID()
	err := s.Update(t.Context(), func(tx store.Tx) error {
		w := &reportWriter{t: t, tx: tx, at: paceDay}
		w.ask("req_1", "issue_refund", "rules=")
		w.decide("req_1", 40*time.Second, "T0001/U0002", approvers.Approve, "team-lead", "")
		w.ask("req_2", "issue_refund", "rules="+large)
		w.decide("req_2", 2*time.Minute, "T0001/U0003", approvers.Reject, "team-lead", "=HYPERLINK(\"x\")\nthe order <b>was</b> paid")
		for i := range 3 {
			id := fmt.Sprintf("req_mail_%d", i)
			w.ask(id, "send_email")
			w.decide(id, time.Second, "T0001/U0002", approvers.Approve, "team-lead", "")
		}
		w.ask("req_3", "<img src=x onerror=alert(1)>\u202e")
		w.add("req_3", time.Hour, approvers.AuditEscalated, "", "", "role=finance-director")
		w.add("exec_1", 0, approvers.AuditProposed, "", "{}", "tool=lookup_order", "verdict=auto")
		w.add("exec_1", 0, approvers.AuditExecuting, "", "", "try=1")
		until = w.at.Add(24 * time.Hour)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return until
}

// reportEnv returns the environment of the task, with a policy or without one.
func reportEnv(s store.Store, p *approvers.Policy, out *bytes.Buffer) task.Env {
	return task.Env{Store: s, Out: out, Who: approvers.Operator("ann"), Bare: func() (*workflow.Workflow, error) {
		if p == nil {
			return nil, cli.Misused("the policy is invalid")
		}
		return workflow.New(workflow.Config{Store: s, Policy: func() *approvers.Policy { return p }}), nil
	}}
}

// runReport runs the task, and returns the report.
func runReport(t *testing.T, s store.Store, p *approvers.Policy, o reportOptions) string {
	t.Helper()
	var out bytes.Buffer
	if err := reportTask.Run(t.Context(), reportEnv(s, p, &out), o); err != nil {
		t.Fatal(err)
	}
	return out.String()
}

// otherPayloads is a store that returns the same text, or the same error, for every text of the history.
type otherPayloads struct {
	store.Store
	text string
	err  error
}

func (s otherPayloads) View(ctx context.Context, fn func(store.Reader) error) error {
	return s.Store.View(ctx, func(r store.Reader) error { return fn(otherPayloadsReader{r, s}) })
}

type otherPayloadsReader struct {
	store.Reader
	from otherPayloads
}

func (r otherPayloadsReader) AuditPayload(chain string, seq uint64) (approvers.AuditPayload, error) {
	p, err := r.Reader.AuditPayload(chain, seq)
	p.Body = []byte(r.from.text)
	return p, cmp.Or(err, r.from.err)
}

var update = flag.Bool("update", false, "rewrite testdata/report.txt")

// The report has exactly the figures of testdata/report.txt.
func TestAuditReport(t *testing.T) {
	db := emptyStore(t)
	until := reported(t, db)
	o := reportOptions{ActivityOptions: audit.ActivityOptions{Since: paceDay, Until: until, Reasons: true}, Format: "text"}
	text := runReport(t, db, reportPolicy, o)
	begin, rest, _ := strings.Cut(text, "\nMade ")
	_, rest, _ = strings.Cut(rest, "\n")
	const golden = "testdata/report.txt"
	got := begin + "\n" + rest
	if *update {
		if err := os.WriteFile(golden, []byte(got), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(golden)
	if err != nil {
		t.Fatal(err)
	}
	if got != string(want) {
		t.Errorf("the report is\n%s\nwant\n%s", got, want)
	}
	changed, erased := otherPayloads{Store: db, text: `{"reason":"forged"}`}, otherPayloads{Store: db, err: store.ErrNotFound}
	for what, s := range map[string]store.Store{"changed": changed, "erased": erased} {
		if text := runReport(t, s, reportPolicy, o); strings.Contains(text, "forged") || !strings.Contains(text, "team-lead  ("+what+")") {
			t.Errorf("with a reason that was %s it is\n%s", what, text)
		}
	}
	o.Reasons = false
	if text := runReport(t, db, reportPolicy, o); strings.Contains(text, "HYPERLINK") || !strings.Contains(text, "(left out)") {
		t.Errorf("without reasons it is\n%s", text)
	}
	if text := runReport(t, db, nil, o); !strings.Contains(text, "The policy can't be read.") || strings.Contains(text, "args.amount") {
		t.Errorf("without a policy it is\n%s", text)
	}
	o.Since, o.Until = until, until.Add(time.Hour)
	if text := runReport(t, db, reportPolicy, o); !strings.Contains(text, "Nothing was rejected.") || !strings.Contains(text, "requests to people                                 0") {
		t.Errorf("the hour after it is\n%s", text)
	}
}

// The CSV form has one figure per line. Numbers are plain, and no field is a spreadsheet formula.
func TestAuditReportAsCSV(t *testing.T) {
	db := emptyStore(t)
	o := reportOptions{ActivityOptions: audit.ActivityOptions{Until: reported(t, db), Reasons: true}, Format: "csv"}
	rows, err := csv.NewReader(strings.NewReader(runReport(t, db, reportPolicy, o))).ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	has := map[string]string{}
	for _, row := range rows {
		has[strings.Join(row[:4], "|")] = row[4]
	}
	for key, want := range map[string]string{
		"table|name|detail|figure":                             "value",
		"people|Teo T0001/U0002||quick_share":                  "0.7500",
		"people|Teo T0001/U0002||p90_seconds":                  "40",
		"roles|team-lead||rejected":                            "1",
		"rejections|req_2|issue_refund|reason":                 `'=HYPERLINK("x") the order <b>was</b> paid`,
		"rejections|req_2|issue_refund|time":                   "2026-03-02T11:02:44Z",
		`rules|issue_refund|2: args.currency != "USD"|matched`: "0",
		"waits|finance-director||oldest_seconds":               "86400",
		"automatic|lookup_order||runs":                         "1",
		"unopposed|send_email||grants":                         "true",
		"tools|<img src=x onerror=alert(1)>⟨U+202E⟩||open":     "1",
		"summary|share of approvals within 3 s||value":         "0.7500",
	} {
		if got, there := has[key]; got != want || !there {
			t.Errorf("%s is %q, want %q", key, got, want)
		}
	}
}

// The CSV form says why a reason is missing, and how many rows are damaged. A reader of the file has no other source.
func TestAuditReportAsCSVSaysWhatIsMissing(t *testing.T) {
	db := emptyStore(t)
	until := reported(t, db)
	damaged := &store.DamagedError{Damage: store.Damage{Bucket: "audit_payloads", Key: "req_2 3", ID: "req_2", Why: "a test says so"}}
	for unsaid, c := range map[string]struct {
		s           store.Store
		withReasons bool
		rows        string
	}{
		"":         {db, true, "0"},
		"left out": {db, false, "0"},
		"erased":   {otherPayloads{Store: db, err: store.ErrNotFound}, true, "0"},
		"changed":  {otherPayloads{Store: db, text: `{"reason":"forged"}`}, true, "0"},
		"damaged":  {otherPayloads{Store: db, err: damaged}, true, "1"},
	} {
		var out bytes.Buffer
		o := reportOptions{ActivityOptions: audit.ActivityOptions{Since: paceDay, Until: until, Reasons: c.withReasons}, Format: "csv"}
		if err := reportTask.Run(t.Context(), reportEnv(c.s, reportPolicy, &out), o); (err != nil) != (unsaid == "damaged") {
			t.Errorf("%s: %v", unsaid, err)
		}
		text := out.String()
		if got := strings.Contains(text, "\nrejections,req_2,issue_refund,reason_missing,"+unsaid+"\r\n"); got != (unsaid != "") {
			t.Errorf("a reason that is %q is written as\n%s", unsaid, text)
		}
		if unsaid == "" && strings.Contains(text, "reason_missing") {
			t.Errorf("a reason is missing in\n%s", text)
		}
		_, basis, _ := strings.Cut(text, "\nbasis,since,,value,2026-03-02T09:00:00Z\r\n")
		for _, line := range []string{"basis,policy,,value,0123456789abcdef\r\n", "basis,damaged rows that are not counted,,value," + c.rows + "\r\n"} {
			if !strings.Contains(basis, line) {
				t.Errorf("%q: the last part lacks %q:\n%s", unsaid, line, basis)
			}
		}
	}
}

// The HTML page escapes all texts and loads nothing.
func TestAuditReportPage(t *testing.T) {
	db := emptyStore(t)
	o := reportOptions{ActivityOptions: audit.ActivityOptions{Since: paceDay, Until: reported(t, db), Reasons: true}, Format: "html"}
	page := runReport(t, db, reportPolicy, o)
	for _, want := range []string{
		"<h1>Approvals from 2026-03-02 09:00:00 UTC to ", " by ann from the history", "<td>&lt;img src=x onerror=alert(1)&gt;⟨U&#43;202E⟩</td>",
		"the order &lt;b&gt;was&lt;/b&gt; paid", `<td class="number">75 %</td>`, "Rules that never matched come first.",
	} {
		if !strings.Contains(page, want) {
			t.Errorf("the page lacks %q", want)
		}
	}
	for _, hostile := range []string{"<script", "<img", "<b>", "\u202e", "\x1b", "http:", "https:"} {
		if strings.Contains(page, hostile) {
			t.Errorf("the page has %q", hostile)
		}
	}
	if err := auditreport.Write(&bytes.Buffer{}, "pdf", auditreport.Report{Figures: &audit.Activity{}}); err == nil {
		t.Error("an unknown format is written")
	}
}
