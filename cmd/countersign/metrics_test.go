package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil/promlint"

	"countersign/agent"
	"countersign/agent/catalog"
	"countersign/approvers"
	"countersign/approvers/audit"
	"countersign/approvers/workflow"
	"countersign/bot/rotation"
	"countersign/bot/slackapi"
	"countersign/cmd/countersign/metrics"
	"countersign/cmd/countersign/openstore"
	"countersign/cmd/countersign/policyfile"
	"countersign/config"
	"countersign/store"
)

// scrape returns the lines of /metrics, without the figures of the process itself.
func scrape(t *testing.T, m *metrics.Metrics) []string {
	t.Helper()
	rec := httptest.NewRecorder()
	admin(nil, m.Handler()).ServeHTTP(rec, httptest.NewRequest(http.MethodGet, "/metrics", nil))
	if rec.Code != 200 {
		t.Fatalf("%d: %s", rec.Code, rec.Body)
	}
	var out []string
	for _, line := range strings.Split(rec.Body.String(), "\n") {
		if strings.HasPrefix(line, "countersign_") {
			out = append(out, line)
		}
	}
	return out
}

func wantLines(t *testing.T, got []string, want ...string) {
	t.Helper()
	all := "\n" + strings.Join(got, "\n") + "\n"
	for _, line := range want {
		if !strings.Contains(all, "\n"+line+"\n") {
			t.Errorf("there is no line %s in%s", line, all)
		}
	}
}

// openToolServer starts an MCP server that has one tool, and returns the server's URL.
func openToolServer(t *testing.T, tool string) string {
	t.Helper()
	server := mcp.NewServer(&mcp.Implementation{Name: "one tool", Version: "1"}, nil)
	server.AddTool(&mcp.Tool{Name: tool, InputSchema: json.RawMessage(`{"type":"object"}`)}, func(context.Context, *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: "did " + tool}}}, nil
	})
	s := httptest.NewServer(mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return server }, nil))
	t.Cleanup(func() {
		s.CloseClientConnections() // needed because an event stream never ends by itself
		s.Close()
	})
	return s.URL
}

// calledCatalog returns a catalog with three servers. One server had one call. The tool of the second server has no
// pin. The third server is down.
func calledCatalog(t *testing.T) *catalog.Catalog {
	t.Helper()
	url := openToolServer(t, "look")
	look := make(chan agent.Tool, 1)
	c, err := catalog.New(catalog.Config{
		Own: []config.Server{{Name: "up", URL: url, Allow: []string{"127.0.0.1"}, Timeout: time.Minute, MaxResult: 1 << 20}},
		Wrap: func(tool *agent.Tool) {
			if tool.Name == "up.look" {
				look <- *tool
			}
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "countersign.yaml")
	write(t, path, []byte(boxPolicy+fmt.Sprintf(crmEntry, url)+"  lost: {command: [no-such-program-anywhere]}\n"))
	if _, err := policyfile.Open(path, c, slog.New(slog.DiscardHandler)); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Begin(t.Context()))
	tool := <-look
	if _, err := tool.Run(t.Context(), agent.Invocation{Key: "exec-1", Args: []byte("{}")}); err != nil {
		t.Fatal(err)
	}
	return c
}

func metricsPolicy() *approvers.Policy {
	return &approvers.Policy{Tools: []approvers.ToolPolicy{{Name: "issue_refund", Risk: approvers.High}}}
}

func emptyStore(t *testing.T) store.Store {
	t.Helper()
	db, err := openstore.File(filepath.Join(t.TempDir(), "countersign.db"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { db.Close() })
	return db
}

// The metrics count each kind of event. Only approvals can count as too quick. Tools that the policy does not name
// share one label.
func TestMetrics(t *testing.T) {
	m := metrics.New(emptyStore(t), metricsPolicy)
	decide := func(tool string, kind approvers.DecisionKind, took time.Duration) {
		m.Count(workflow.Event{Tool: tool, Decision: &approvers.Decision{Kind: kind, Role: "team-lead", Took: took}})
	}
	decide("issue_refund", approvers.Approve, 2750*time.Millisecond)
	decide("issue_refund", approvers.Approve, 3*time.Second)
	decide("issue_refund", approvers.Approve, 0) // the time is not known
	decide("issue_refund", approvers.Reject, time.Second)
	decide("issue_refund", approvers.Modify, time.Second)
	decide("made_up_1", approvers.Approve, time.Second)
	decide("made_up_2", approvers.Approve, time.Minute)
	m.Count(workflow.Event{Tool: "issue_refund", Decision: &approvers.Decision{Kind: approvers.Approve, By: "operator:anna", BreakGlass: true}})
	m.Count(workflow.Event{Tool: "issue_refund", Ended: approvers.Expired})
	m.Count(workflow.Event{Tool: "issue_refund", Ended: approvers.Consumed})
	m.Count(workflow.Event{Tool: "issue_refund", Ran: approvers.ExecutionSucceeded})
	m.Count(workflow.Event{Tool: "issue_refund", Ran: approvers.ExecutionUnknown})
	m.Count(workflow.Event{Answer: &workflow.AnswerShown{SinceEnd: 2 * time.Second, SinceRun: 3 * time.Second}})
	m.Count(workflow.Event{Answer: &workflow.AnswerShown{SinceEnd: time.Second}}) // nothing ran
	wantLines(t, scrape(t, m),
		`countersign_decisions_operator_total{kind="approve",tool="issue_refund"} 1`,
		`countersign_decision_seconds_count{kind="approve",role="team-lead",tool="issue_refund"} 2`,
		`countersign_decision_seconds_sum{kind="approve",role="team-lead",tool="issue_refund"} 5.75`,
		`countersign_decision_seconds_bucket{kind="approve",role="team-lead",tool="issue_refund",le="1"} 0`,
		`countersign_decision_seconds_count{kind="reject",role="team-lead",tool="issue_refund"} 1`,
		`countersign_decision_seconds_count{kind="modify",role="team-lead",tool="issue_refund"} 1`,
		`countersign_decision_seconds_count{kind="approve",role="team-lead",tool="other"} 2`,
		`countersign_decisions_quick_total{role="team-lead",tool="issue_refund"} 1`,
		`countersign_decisions_quick_total{role="team-lead",tool="other"} 1`,
		`countersign_requests_total{state="expired",tool="issue_refund"} 1`,
		`countersign_requests_total{state="consumed",tool="issue_refund"} 1`,
		`countersign_requests_waiting 0`,
		`countersign_runs_total{state="succeeded",tool="issue_refund"} 1`,
		`countersign_runs_total{state="unknown",tool="issue_refund"} 1`,
		`countersign_answer_shown_seconds_count{since="end"} 2`,
		`countersign_answer_shown_seconds_sum{since="end"} 3`,
		`countersign_answer_shown_seconds_sum{since="run"} 3`,
	)
}

// The series of rare events begin at 0, so that Prometheus' increase() counts the first event.
func TestRareEventsBeginAtZero(t *testing.T) {
	m := metrics.New(emptyStore(t), func() *approvers.Policy {
		return &approvers.Policy{
			Tools:     []approvers.ToolPolicy{{Name: "issue_refund"}, {Name: "deploy"}},
			Approvers: []approvers.Role{{Name: "team-lead", CanApprove: []string{"deploy"}}, {Name: "director", CanApprove: []string{"*"}}},
			Agents:    []approvers.Agent{{Name: "support"}},
			Clients:   []approvers.Client{{Name: "ci", Webhook: &approvers.Webhook{}}, {Name: "silent"}},
		}
	})
	m.Count(workflow.Event{Tool: "deploy", Decision: &approvers.Decision{Kind: approvers.Approve, By: "operator:anna", BreakGlass: true}})
	lines := scrape(t, m)
	wantLines(t, lines,
		`countersign_decisions_operator_total{kind="approve",tool="deploy"} 1`,
		`countersign_decisions_operator_total{kind="approve",tool="issue_refund"} 0`,
		`countersign_decisions_operator_total{kind="reject",tool="other"} 0`,
		`countersign_requests_unanswered_total{role="team-lead",tool="deploy"} 0`,
		`countersign_requests_unanswered_total{role="director",tool="other"} 0`,
		`countersign_webhook_deliveries_total{client="ci",outcome="failed"} 0`,
		`countersign_model_calls_total{agent="support",outcome="no_credit"} 0`,
	)
	for _, l := range lines {
		if strings.Contains(l, `role="team-lead",tool="issue_refund"`) || strings.Contains(l, "silent") {
			t.Errorf("there is a needless series: %s", l)
		}
	}
}

// Each scrape checks whether Slack answers. The metrics count each call to Slack, and count waiting messages by rank.
func TestMetricsOfSlack(t *testing.T) {
	db := emptyStore(t)
	m := metrics.New(db, metricsPolicy)
	var down error
	m.WatchSlack(db, func(context.Context) error { return down })
	m.CountCall(slackapi.Call{Method: "chat.postMessage", Outcome: slackapi.CallAnswered})
	m.CountRequest(http.StatusOK)
	m.CountCall(slackapi.Call{Method: "chat.postMessage", Outcome: slackapi.CallAnswered})
	m.CountRequest(http.StatusOK)
	m.CountCall(slackapi.Call{Method: "users.info", Outcome: slackapi.CallLimited})
	err := db.Update(t.Context(), func(tx store.Tx) error {
		return tx.SetTimer(store.Timer{Kind: store.RankFirst.Timer(), Ref: "s1", Due: time.Now()})
	})
	if err != nil {
		t.Fatal(err)
	}
	wantLines(t, scrape(t, m),
		`countersign_slack_up 1`,
		`countersign_slack_calls_total{method="chat.postMessage",outcome="answered"} 2`,
		`countersign_slack_calls_total{method="users.info",outcome="limited"} 1`,
		`countersign_outbox_waiting{rank="first"} 1`,
		`countersign_outbox_waiting{rank="plain"} 0`,
		`countersign_outbox_waiting{rank="answer"} 0`,
		`countersign_outbox_waiting{rank="last"} 0`,
	)
	down = errors.New("away")
	wantLines(t, scrape(t, m), `countersign_slack_up 0`)
}

// blind is a store that can't be read.
type blind struct{ store.Store }

func (blind) View(context.Context, func(store.Reader) error) error { return errors.New("gone") }

// If the store can't be read, the figures from the store are left out, and their reads log nothing. All other figures are
// present.
func TestMetricsWithoutTheStore(t *testing.T) {
	m := metrics.New(blind{}, metricsPolicy)
	var log bytes.Buffer
	logger := slog.New(slog.NewTextHandler(&log, nil))
	wf := workflow.New(workflow.Config{Store: blind{}, Policy: metricsPolicy, Log: logger})
	m.WatchWaiting(wf, blind{}, logger)
	m.WatchStore(func(ctx context.Context) error { return takesWrites(ctx, wf) })
	m.Count(workflow.Event{Tool: "issue_refund", Ended: approvers.Expired})
	lines := scrape(t, m)
	wantLines(t, lines, `countersign_store_answers 0`, `countersign_store_up 0`, `countersign_requests_total{state="expired",tool="issue_refund"} 1`)
	for _, l := range lines {
		if strings.HasPrefix(l, "countersign_requests_waiting") || strings.HasPrefix(l, "countersign_runs_unknown_open") {
			t.Errorf("without the store, there is %s", l)
		}
	}
	if log.Len() > 0 {
		t.Errorf("the reads logged:\n%s", &log)
	}
}

// Decisions about the calls of other agents, and the ends of their requests, are also counted by client. Clients that
// the policy does not name share one label. A decision counts even if nobody knows how long it took.
func TestMetricsOfClients(t *testing.T) {
	m := metrics.New(emptyStore(t), func() *approvers.Policy { return &approvers.Policy{Clients: []approvers.Client{{Name: "ci"}}} })
	for _, client := range []string{"ci", "ci", "removed_1", "removed_2"} {
		r := &approvers.Request{Facts: approvers.AskFacts{Caller: &approvers.Caller{Name: client}}}
		m.Count(workflow.Event{Request: r, Decision: &approvers.Decision{Kind: approvers.Reject}})
		m.Count(workflow.Event{Request: r, Ended: approvers.Rejected})
	}
	m.Count(workflow.Event{Request: &approvers.Request{}, Decision: &approvers.Decision{Kind: approvers.Approve}})
	m.Count(workflow.Event{Request: &approvers.Request{}, Ended: approvers.Consumed})
	var got []string
	for _, line := range scrape(t, m) {
		if strings.HasPrefix(line, "countersign_gateway_") {
			got = append(got, line)
		}
	}
	if want := []string{
		`countersign_gateway_approvals_total{client="ci",state="rejected"} 2`,
		`countersign_gateway_approvals_total{client="other",state="rejected"} 2`,
		`countersign_gateway_decisions_total{client="ci",kind="reject"} 2`,
		`countersign_gateway_decisions_total{client="other",kind="reject"} 2`,
	}; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

// allMetrics returns metrics in which every metric has at least one sample.
func allMetrics(t *testing.T) *metrics.Metrics {
	t.Helper()
	tools := calledCatalog(t)
	db := emptyStore(t)
	err := db.Update(t.Context(), func(tx store.Tx) error {
		return tx.PutRequest(approvers.Request{ID: "req_1", State: approvers.Pending, Plan: approvers.Plan{Stages: []approvers.Stage{{Approver: "team-lead", Quorum: 1}}}, CreatedAt: time.Now().UTC().Truncate(time.Microsecond)})
	})
	if err != nil {
		t.Fatal(err)
	}
	m := setup{
		store: db, tools: tools, policies: &policyfile.Source{Tools: tools}, log: slog.New(slog.DiscardHandler),
		rotation: rotation.New(rotation.Options{Store: db, Log: slog.New(slog.DiscardHandler)}),
		seal:     sealing{keys: []approvers.SealKey{{}}, places: []audit.HeadTarget{unreachableTarget{}}},
	}.assemble().metrics
	m.CountCall(slackapi.Call{Method: "chat.postMessage", Outcome: slackapi.CallAnswered})
	m.CountRequest(http.StatusOK)
	m.CountCaller("ci", "read", http.StatusOK)
	m.CountWebhook("ci", "delivered")
	m.WatchGateway(func() int { return 0 })
	m.Count(workflow.Event{Decision: &approvers.Decision{Kind: approvers.Approve, By: "operator:anna", Role: "team-lead", Took: 1}})
	m.Count(workflow.Event{Ended: approvers.Expired})
	m.Count(workflow.Event{Ran: approvers.ExecutionFailed})
	m.Count(workflow.Event{Answer: &workflow.AnswerShown{SinceEnd: 1}})
	asked := &approvers.Request{Facts: approvers.AskFacts{Caller: &approvers.Caller{Name: "ci"}}, Plan: approvers.Plan{Stages: []approvers.Stage{{Approver: "team-lead"}}}}
	m.Count(workflow.Event{Ended: approvers.Expired, Request: asked})
	m.Count(workflow.Event{Decision: &approvers.Decision{Kind: approvers.Reject}, Request: asked})
	m.CountModel(agent.ModelCall{Agent: "support", Outcome: "answered"})
	return m
}

// The names, units and help texts of all metrics follow the conventions of Prometheus.
func TestMetricsAreWellNamed(t *testing.T) {
	answer := httptest.NewRecorder()
	allMetrics(t).Handler().ServeHTTP(answer, httptest.NewRequest(http.MethodGet, "/metrics", http.NoBody))
	problems, err := promlint.New(answer.Body).Lint()
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range problems {
		t.Errorf("%s: %s", p.Metric, p.Text)
	}
}

// Every metric is documented, and every documented metric exists.
func TestMetricsAreDocumented(t *testing.T) {
	doc, err := os.ReadFile("../../docs/metrics.md")
	if err != nil {
		t.Fatal(err)
	}
	m := allMetrics(t)
	families, err := m.Gatherer().Gather()
	if err != nil {
		t.Fatal(err)
	}
	unseen := described(m)
	n := 0
	for _, f := range families {
		if !strings.HasPrefix(f.GetName(), "countersign_") {
			continue
		}
		n++
		delete(unseen, f.GetName())
		var labels []string
		for _, l := range f.GetMetric()[0].GetLabel() {
			labels = append(labels, "`"+l.GetName()+"`")
		}
		if row := "| `" + f.GetName() + "` | " + strings.Join(labels, ", ") + " |"; !strings.Contains(string(doc), row) {
			t.Errorf("docs/metrics.md has no row %s", row)
		}
	}
	if rows := strings.Count(string(doc), "\n| `countersign_"); rows != n {
		t.Errorf("docs/metrics.md has %d metrics, and there are %d", rows, n)
	}
	for name := range unseen {
		t.Errorf("%s has no sample, so its labels are not compared: count something here", name)
	}
}

// The function "described" returns the names of all registered metrics of Countersign, including metrics without
// samples.
func described(m *metrics.Metrics) map[string]bool {
	descs := make(chan *prometheus.Desc)
	go func() {
		defer close(descs)
		m.Describe(descs)
	}()
	names := map[string]bool{}
	for d := range descs {
		if _, rest, ok := strings.Cut(d.String(), `fqName: "countersign_`); ok {
			name, _, _ := strings.Cut(rest, `"`)
			names["countersign_"+name] = true
		}
	}
	return names
}

// The metrics of servers and tools show the state of the catalog.
func TestToolMetrics(t *testing.T) {
	m := metrics.New(emptyStore(t), metricsPolicy)
	m.WatchTools(calledCatalog(t))
	wantLines(t, scrape(t, m), `countersign_server_up{server="crm"} 1`, `countersign_server_up{server="lost"} 0`, `countersign_server_up{server="up"} 1`,
		`countersign_server_tools{server="up"} 1`, `countersign_server_restarts_total{server="up"} 0`, `countersign_server_calls_total{outcome="answered",server="up"} 1`,
		`countersign_tools_blocked{source="crm"} 1`, `countersign_tools_blocked{source="up"} 0`)
}

// The metrics of a running bot are correct while a request waits, when it is approved, and when it runs.
func TestMetricsOfTheBot(t *testing.T) {
	h := openDemoHarness(t, t.TempDir(), nil)
	teo := h.watcher("teo")
	h.watcher("sam").says("#support", "", "@Countersign refund ORD-123, it arrived broken")
	teo.sees("countersign", "", "ORD-123")
	lines := scrape(t, h.bot.metrics)
	wantLines(t, lines, `countersign_requests_waiting 1`, `countersign_requests_pending{risk="high",role="team-lead"} 1`,
		`countersign_requests_pending{risk="critical",role="finance-director"} 0`, `countersign_requests_unreachable 0`,
		`countersign_messages_undelivered{kind="refused"} 0`, `countersign_runs_unknown_open 0`)
	if began := valueIn(t, lines, `countersign_requests_pending_since_timestamp_seconds{risk="high",role="team-lead"}`); time.Since(time.Unix(int64(began), 0)).Abs() > time.Minute {
		t.Errorf("the stage began at %f", began)
	}
	teo.clicks("countersign", "", "Approve", "ORD-123")
	teo.wait("the run to be counted", func(context.Context) (bool, error) {
		return strings.Contains(strings.Join(scrape(t, h.bot.metrics), "\n"), `countersign_runs_total{state="succeeded",tool="issue_refund"} 1`), nil
	})
	wantLines(t, scrape(t, h.bot.metrics),
		`countersign_decision_seconds_count{kind="approve",role="team-lead",tool="issue_refund"} 1`,
		`countersign_requests_total{state="consumed",tool="issue_refund"} 1`,
		`countersign_requests_waiting 0`,
		`countersign_requests_pending{risk="high",role="team-lead"} 0`,
		`countersign_request_wait_seconds_count{risk="high",state="approved"} 1`,
		`countersign_run_start_seconds_count 1`,
	)
	teo.wait("the answer to be counted", func(context.Context) (bool, error) {
		return strings.Contains(strings.Join(scrape(t, h.bot.metrics), "\n"), `countersign_answer_shown_seconds_count{since="end"} 1`), nil
	})
	lines = scrape(t, h.bot.metrics)
	for _, name := range []string{
		`countersign_model_tokens_total{agent="support",direction="input"}`, `countersign_model_tokens_total{agent="support",direction="output"}`,
		`countersign_store_size_bytes`, `countersign_store_write_seconds_count`, `countersign_model_call_seconds_count{agent="support"}`,
	} {
		if valueIn(t, lines, name) <= 0 {
			t.Errorf("%s is 0", name)
		}
	}
}

// valueIn returns the value of a metric.
func valueIn(t *testing.T, lines []string, metric string) float64 {
	t.Helper()
	for _, l := range lines {
		if text, ok := strings.CutPrefix(l, metric+" "); ok {
			v, err := strconv.ParseFloat(text, 64)
			if err != nil {
				t.Fatal(err)
			}
			return v
		}
	}
	t.Fatalf("there is no %s", metric)
	return 0
}

// The number of requests that nobody decided, and the time until a run, are computed from the request in the event.
func TestMetricsOfTheEndOfARequest(t *testing.T) {
	m := metrics.New(emptyStore(t), metricsPolicy)
	began := time.Date(2026, 11, 2, 9, 0, 0, 0, time.UTC)
	plan := approvers.Plan{Risk: approvers.High, Stages: []approvers.Stage{{Approver: "team-lead", Quorum: 1}}}
	end := func(state approvers.State, r approvers.Request) {
		r.Plan, r.CreatedAt = plan, began
		m.Count(workflow.Event{Tool: "issue_refund", Ended: state, At: began.Add(time.Hour), Request: &r})
	}
	end(approvers.Expired, approvers.Request{})
	end(approvers.Expired, approvers.Request{Decisions: []approvers.Decision{{Kind: approvers.Approve}}}) // somebody acted
	end(approvers.Expired, approvers.Request{RunBy: began.Add(time.Minute)})                              // the request was approved, and its call did not run in time
	end(approvers.Rejected, approvers.Request{Decisions: []approvers.Decision{{Kind: approvers.Reject}}})
	end(approvers.Consumed, approvers.Request{RunBy: began, Decisions: []approvers.Decision{
		{Kind: approvers.Approve, At: began.Add(10 * time.Minute)}, {Kind: approvers.Approve, At: began.Add(59 * time.Minute)},
		{Kind: approvers.Approve, At: began.Add(59*time.Minute + time.Second), Fallen: true},
	}})
	m.Count(workflow.Event{Tool: "issue_refund", Approved: true, At: began.Add(time.Minute), Request: &approvers.Request{Plan: plan, CreatedAt: began}})
	wantLines(t, scrape(t, m),
		`countersign_requests_unanswered_total{role="team-lead",tool="issue_refund"} 1`,
		`countersign_request_wait_seconds_count{risk="high",state="expired"} 2`,
		`countersign_request_wait_seconds_sum{risk="high",state="expired"} 7200`,
		`countersign_request_wait_seconds_count{risk="high",state="rejected"} 1`,
		`countersign_request_wait_seconds_sum{risk="high",state="approved"} 60`,
		`countersign_run_start_seconds_count 1`, `countersign_run_start_seconds_sum 60`,
	)
}

// BenchmarkScrape measures one collection of the metrics while 3,000 requests wait.
func BenchmarkScrape(b *testing.B) {
	db, err := openstore.File(filepath.Join(b.TempDir(), "countersign.db"))
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { db.Close() })
	plan := approvers.Plan{Risk: approvers.High, Stages: []approvers.Stage{{Approver: "team-lead", Quorum: 1}}}
	err = db.Update(b.Context(), func(tx store.Tx) error {
		for i := range 3000 {
			now := time.Now().UTC().Truncate(time.Microsecond)
			r := approvers.Request{
				ID: fmt.Sprintf("req_%d", i), State: approvers.Pending, Tool: "issue_refund", Args: []byte(`{"text":"` + strings.Repeat("x", 500) + `"}`), Plan: plan, CreatedAt: now, StageAt: now,
			}
			if err := errors.Join(tx.PutRequest(r), tx.SetTimer(store.Timer{Kind: store.TimerExpire, Ref: r.ID, Due: now})); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		b.Fatal(err)
	}
	m := metrics.New(db, metricsPolicy)
	m.WatchWaiting(workflow.New(workflow.Config{Store: db, Policy: metricsPolicy, Tools: new(agent.Registry), Log: slog.New(slog.DiscardHandler)}), db, slog.New(slog.DiscardHandler))
	for b.Loop() {
		if _, err := m.Gatherer().Gather(); err != nil {
			b.Fatal(err)
		}
	}
}
