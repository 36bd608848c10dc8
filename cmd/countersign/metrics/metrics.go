// Package metrics counts events of the bot, and reads the amount of waiting work from the store. The admin address
// serves the metrics at /metrics. docs/metrics.md explains each metric. The package does not change the store.
package metrics

import (
	"context"
	"errors"
	"log/slog"
	"math"
	"math/bits"
	"net/http"
	"regexp"
	"strconv"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	dto "github.com/prometheus/client_model/go"

	"countersign/agent"
	"countersign/agent/catalog"
	"countersign/approvers"
	"countersign/approvers/audit"
	"countersign/approvers/workflow"
	"countersign/approvers/workflow/retention"
	"countersign/bot/slackapi"
	"countersign/cmd/countersign/cli"
	"countersign/store"
)

// liveHeap matches the memory of the objects that the last garbage collection found in use: go_gc_heap_live_bytes.
var liveHeap = regexp.MustCompile(`^/gc/heap/live:bytes$`)

// Metrics holds the metrics that /metrics of the admin address serves. docs/metrics.md explains each metric.
type Metrics struct {
	// Exemplar returns the labels that identify the trace of a turn. The labels are nil if the turn is not traced.
	Exemplar func(turn string) prometheus.Labels

	policy       func() *approvers.Policy
	registry     *prometheus.Registry
	stored       storeReads // the metrics that are read from the store at each scrape
	took         *prometheus.HistogramVec
	quick        *prometheus.CounterVec
	requests     *prometheus.CounterVec
	runs         *prometheus.CounterVec
	operator     *prometheus.CounterVec
	answers      *prometheus.HistogramVec
	calls        *prometheus.CounterVec   // calls to Slack's Web API
	httpRequests *prometheus.CounterVec   // Slack's HTTP requests
	callers      *prometheus.CounterVec   // HTTP requests of other agents
	asked        *prometheus.CounterVec   // requests for approval of other agents' calls
	decided      *prometheus.CounterVec   // decisions about other agents' calls
	webhooks     *prometheus.CounterVec   // deliveries to other agents' webhooks
	ended        *prometheus.HistogramVec // time until a request was approved, or ended without approval
	unanswered   *prometheus.CounterVec   // requests that expired without a decision
	starts       prometheus.Histogram     // time from the click that completed the approval to the run
	models       *prometheus.CounterVec   // model calls
	modelTook    *prometheus.HistogramVec
	tokens       *prometheus.CounterVec
	wrote        prometheus.Histogram // transactions of the store
	held         prometheus.Gauge
	retained     retained
}

// New returns the metrics of a bot with the store s. The function policy returns the policy in force.
func New(s store.Store, policy func() *approvers.Policy) *Metrics {
	m := &Metrics{
		policy: policy, registry: prometheus.NewRegistry(), stored: storeReads{store: s, registry: prometheus.NewRegistry()},
		retained: newRetained(), Exemplar: func(string) prometheus.Labels { return nil },
		took: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "countersign_decision_seconds", Help: "Time from when a card was shown to the decision on it.",
			Buckets: []float64{1, audit.QuickApproval.Seconds(), 10, 30, 60, 180, 600, 1800, 3600, 4 * 3600, 24 * 3600},
		}, []string{"kind", "role", "tool"}),
		quick: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "countersign_decisions_quick_total", Help: "Approvals in less than 3 s after the card was shown.",
		}, []string{"role", "tool"}),
		requests: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "countersign_requests_total", Help: "Requests that came to an end, by their last state.",
		}, []string{"state", "tool"}),
		runs: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "countersign_runs_total", Help: "Runs of tools that came to an end: succeeded, failed, or unknown.",
		}, []string{"state", "tool"}),
		operator: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "countersign_decisions_operator_total", Help: "Decisions at the command line. An approval is in place of the approvers.",
		}, []string{"kind", "tool"}),
		answers: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "countersign_answer_shown_seconds", Help: "Time until Slack shows an answer: since the turn ended, and since its last run.",
			Buckets: []float64{.5, 1, 2, 5, 10, 30, 60, 120, 300, 900, 3600},
		}, []string{"since"}),
		calls: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "countersign_slack_calls_total", Help: "Calls to Slack's Web API: answered, limited, failed, or put off without being made.",
		}, []string{"method", "outcome"}),
	}
	m.httpRequests = prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "countersign_slack_requests_total", Help: "HTTP requests at the address for Slack's requests, by response status.",
	}, []string{"status"})
	m.webhooks = prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "countersign_webhook_deliveries_total", Help: "Deliveries to the webhooks of other agents.",
	}, []string{"client", "outcome"})
	m.callers = prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "countersign_gateway_requests_total", Help: "HTTP requests of other agents, by client, operation and response status.",
	}, []string{"client", "operation", "status"})
	m.asked = prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "countersign_gateway_approvals_total", Help: "Requests for the approval of other agents' calls that came to an end, by client and last state.",
	}, []string{"client", "state"})
	m.decided = prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "countersign_gateway_decisions_total", Help: "Decisions about other agents' calls, by client.",
	}, []string{"client", "kind"})
	m.ended = prometheus.NewHistogramVec(prometheus.HistogramOpts{
		Name: "countersign_request_wait_seconds", Help: "Time from a request until it was approved, or ended without an approval.",
		Buckets: []float64{10, 60, 300, 900, 1800, 3600, 4 * 3600, 24 * 3600, 3 * 24 * 3600},
	}, []string{"state", "risk"})
	m.unanswered = prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "countersign_requests_unanswered_total", Help: "Requests that expired although nobody had decided anything.",
	}, []string{"role", "tool"})
	m.starts = prometheus.NewHistogram(prometheus.HistogramOpts{
		Name: "countersign_run_start_seconds", Help: "Time from the decision that completed the approval until the run began.",
		Buckets: []float64{.1, .25, .5, 1, 2, 5, 10, 30, 120, 600},
	})
	m.models = prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "countersign_model_calls_total", Help: "Calls to the model: answered, interrupted, or why they failed. A failed call is tried again where that may help.",
	}, []string{"agent", "outcome"})
	m.modelTook = prometheus.NewHistogramVec(prometheus.HistogramOpts{
		Name: "countersign_model_call_seconds", Help: "Time until the model's full answer arrived.",
		Buckets: []float64{.5, 1, 2, 5, 10, 20, 40, 80, 160, 320},
	}, []string{"agent"})
	m.tokens = prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "countersign_model_tokens_total", Help: "Tokens that the model read (input) and wrote (output), as its endpoint says, or as estimated.",
	}, []string{"agent", "direction"})
	m.wrote = prometheus.NewHistogram(prometheus.HistogramOpts{
		Name: "countersign_store_write_seconds", Help: "Time that transactions of the store took until they were durable, with their wait for others.",
		Buckets: []float64{.0005, .001, .0025, .005, .01, .025, .05, .1, .25, 1, 5},
	})
	m.held = prometheus.NewGauge(prometheus.GaugeOpts{
		Name: "countersign_held", Help: "1 while the bot is held, because its store is old: nothing is decided and nothing runs.",
	})
	m.registry.MustRegister(m.ended, m.unanswered, m.starts, m.models, m.modelTook, m.tokens, m.wrote, m.held)
	waiting := prometheus.NewGaugeFunc(prometheus.GaugeOpts{
		Name: "countersign_requests_waiting", Help: "Requests that wait for people or for their run. Not counted beyond 10000.",
	}, func() float64 { return timersSet(s, store.TimerExpire) })
	m.stored.registry.MustRegister(waiting)
	m.registry.MustRegister(m.took, m.quick, m.requests, m.runs, m.operator, m.answers, m.calls, m.httpRequests, m.callers, m.asked, m.decided, m.webhooks, m.stored.answers(),
		m.retained.conversations, m.retained.records, m.retained.last,
		collectors.NewGoCollector(collectors.WithGoCollectorRuntimeMetrics(collectors.GoRuntimeMetricsRule{Matcher: liveHeap})),
		collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	return m
}

// WatchBuild adds a metric whose labels identify the build of this program.
func (m *Metrics) WatchBuild(b cli.Build) {
	m.registry.MustRegister(prometheus.NewGaugeFunc(prometheus.GaugeOpts{
		Name: "countersign_build_info", Help: "Always 1. The labels say from which source the program was built.",
		ConstLabels: prometheus.Labels{"version": b.Version, "commit": b.Commit, "goversion": b.Go},
	}, func() float64 { return 1 }))
}

// Hold records that the bot is held.
func (m *Metrics) Hold() { m.held.Set(1) }

// Handler serves the metrics.
func (m *Metrics) Handler() http.Handler {
	h := promhttp.HandlerFor(m.Gatherer(), promhttp.HandlerOpts{EnableOpenMetrics: true}) // only the format OpenMetrics has exemplars
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		m.beginAtZero()
		h.ServeHTTP(w, r)
	})
}

// beginAtZero adds the series of rare events with the value 0. Prometheus' increase() does not count the first event of
// a series that begins with 1. Without the value 0, an alert would miss this event.
func (m *Metrics) beginAtZero() {
	p := m.policy()
	tools := []string{"other"}
	for _, t := range p.Tools {
		tools = append(tools, t.Name)
	}
	for _, tool := range tools {
		for _, kind := range []approvers.DecisionKind{approvers.Approve, approvers.Reject} {
			m.operator.WithLabelValues(string(kind), tool)
		}
		for _, role := range p.Approvers {
			if role.Covers(tool) {
				m.unanswered.WithLabelValues(role.Name, tool)
			}
		}
	}
	for _, a := range p.Agents {
		for _, outcome := range agent.ModelOutcomes() {
			m.models.WithLabelValues(a.Name, outcome)
		}
	}
	for _, c := range p.Clients {
		for _, outcome := range []string{"delivered", "failed", "dropped"} {
			if c.Webhook != nil {
				m.webhooks.WithLabelValues(c.Name, outcome)
			}
		}
	}
}

// Count counts one event.
func (m *Metrics) Count(e workflow.Event) {
	inc := func(c prometheus.Counter) { c.(prometheus.ExemplarAdder).AddWithExemplar(1, m.Exemplar(e.Turn)) }
	observe := func(h prometheus.Observer, d time.Duration) {
		h.(prometheus.ExemplarObserver).ObserveWithExemplar(d.Seconds(), m.Exemplar(e.Turn))
	}
	tool, client := m.tool(e.Tool), m.client(e.Request)
	switch {
	case e.Decision != nil:
		d := *e.Decision
		if client != "" {
			inc(m.decided.WithLabelValues(client, string(d.Kind)))
		}
		if d.By.Login() != "" {
			inc(m.operator.WithLabelValues(string(d.Kind), tool))
		}
		if d.Took <= 0 {
			return // the time at which the card was shown is unknown
		}
		observe(m.took.WithLabelValues(string(d.Kind), d.Role, tool), d.Took)
		if audit.IsQuick(d.Kind, d.Took) {
			inc(m.quick.WithLabelValues(d.Role, tool))
		}
	case e.Approved:
		m.waited(e, string(approvers.Approved), observe)
	case e.Ended != "":
		inc(m.requests.WithLabelValues(string(e.Ended), tool))
		if client != "" {
			inc(m.asked.WithLabelValues(client, string(e.Ended)))
		}
		m.requestEnded(e, tool, inc, observe)
	case e.Ran != "":
		inc(m.runs.WithLabelValues(string(e.Ran), tool))
	case e.Answer != nil:
		observe(m.answers.WithLabelValues("end"), e.Answer.SinceEnd)
		if e.Answer.SinceRun > 0 {
			observe(m.answers.WithLabelValues("run"), e.Answer.SinceRun)
		}
	}
}

// requestEnded updates the metrics about people and about the run when a request ends.
func (m *Metrics) requestEnded(e workflow.Event, tool string, inc func(prometheus.Counter), observe func(prometheus.Observer, time.Duration)) {
	r := e.Request
	switch {
	case r == nil:
	case e.Ended == approvers.Consumed:
		var clicked time.Time // the click that completed the approval
		for _, d := range r.ValidApprovals() {
			if d.At.After(clicked) {
				clicked = d.At
			}
		}
		if !clicked.IsZero() {
			observe(m.starts, max(0, e.At.Sub(clicked)))
		}
	case r.RunBy.IsZero(): // the request was never approved
		m.waited(e, string(e.Ended), observe)
		if e.Ended == approvers.Expired && len(r.Decisions) == 0 {
			inc(m.unanswered.WithLabelValues(r.CurrentStage().Approver, tool))
		}
	}
}

// The method "waited" counts how long a request waited for people.
func (m *Metrics) waited(e workflow.Event, state string, observe func(prometheus.Observer, time.Duration)) {
	if e.Request != nil {
		observe(m.ended.WithLabelValues(state, e.Request.Plan.Risk.String()), max(0, e.At.Sub(e.Request.CreatedAt)))
	}
}

// CountModel counts one call to the model.
func (m *Metrics) CountModel(c agent.ModelCall) {
	m.models.WithLabelValues(c.Agent, c.Outcome).Inc()
	if c.Outcome == agent.ModelAnswered {
		m.modelTook.WithLabelValues(c.Agent).Observe(c.Took.Seconds())
		m.tokens.WithLabelValues(c.Agent, "input").Add(float64(c.In))
		m.tokens.WithLabelValues(c.Agent, "output").Add(float64(c.Out))
	}
}

// tool returns the value of the label "tool". If the policy does not name the tool, the value is "other". This limits
// the number of label values.
func (m *Metrics) tool(name string) string {
	if _, known := m.policy().Tool(name, ""); !known {
		return "other"
	}
	return name
}

// client returns the value of the label "client" for a request, or "" if Countersign's own agent asked. If the policy
// no longer names the client, the value is "other".
func (m *Metrics) client(r *approvers.Request) string {
	if r == nil || r.Facts.Caller == nil {
		return ""
	}
	if _, known := m.policy().Client(r.Facts.Caller.Name); !known {
		return "other"
	}
	return r.Facts.Caller.Name
}

// mostWaiting limits how many rows a request to /metrics reads for one metric.
const mostWaiting = 10_000

// timersSet counts the timers of a kind. For example, each waiting request has a timer for its deadline, and each
// unsent outbox message has a timer.
func timersSet(s store.Store, kind store.TimerKind) float64 {
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	var timers []store.Timer
	err := s.View(ctx, func(r store.Reader) (err error) {
		timers, err = r.Timers(kind, mostWaiting)
		return err
	})
	if err != nil {
		return math.NaN() // unknown is not zero
	}
	return float64(len(timers))
}

// WatchSeal adds metrics about two things: audit records that no signed head covers, and signed heads that have not
// reached their destination.
func (m *Metrics) WatchSeal(s store.Store, sealer *audit.Sealer) {
	m.stored.registry.MustRegister(prometheus.NewGaugeFunc(prometheus.GaugeOpts{
		Name: "countersign_audit_unsealed", Help: "Records of the history that no signed head covers. Not counted beyond 10000.",
	}, func() float64 { return unsealed(s) }))
	for _, c := range sealer.Shippers {
		m.stored.registry.MustRegister(prometheus.NewGaugeFunc(prometheus.GaugeOpts{
			Name: "countersign_audit_heads_waiting", Help: "Signed heads that are not yet copied outside of the store.",
			ConstLabels: prometheus.Labels{"to": c.Target.String()},
		}, func() float64 {
			n, err := c.Waiting(context.Background())
			if err != nil {
				return math.NaN()
			}
			return float64(n)
		}))
	}
}

// WatchBotToken adds a metric about the bot token of an app with token rotation.
func (m *Metrics) WatchBotToken(expires func() time.Time) {
	m.registry.MustRegister(prometheus.NewGaugeFunc(prometheus.GaugeOpts{
		Name: "countersign_bot_token_expiry_timestamp_seconds", Help: "When the bot token of an app with token rotation expires.",
	}, func() float64 { return float64(expires().Unix()) }))
}

// The function "unsealed" counts the audit records that no signed head covers.
func unsealed(s store.Store) float64 {
	var entries []approvers.JournalEntry
	err := s.View(context.Background(), func(r store.Reader) error {
		last, err := r.LastHead()
		if err != nil && !errors.Is(err, store.ErrNotFound) {
			return err
		}
		entries, err = r.Journal(last.Size, mostWaiting)
		return err
	})
	if err != nil {
		return math.NaN()
	}
	return float64(len(entries))
}

// CountCall counts one call to Slack's Web API.
func (m *Metrics) CountCall(c slackapi.Call) {
	m.calls.WithLabelValues(c.Method, string(c.Outcome)).Inc()
}

// CountRequest counts one HTTP request.
func (m *Metrics) CountRequest(status int) {
	m.httpRequests.WithLabelValues(strconv.Itoa(status)).Inc()
}

// WatchSlack adds metrics of Slack's availability, and of the work that waits for Slack.
func (m *Metrics) WatchSlack(s store.Store, ready func(context.Context) error) {
	m.registry.MustRegister(prometheus.NewGaugeFunc(prometheus.GaugeOpts{
		Name: "countersign_slack_up", Help: "1 while Slack answers and a connection from it is up.",
	}, func() float64 {
		if ready(context.Background()) != nil {
			return 0
		}
		return 1
	}))
	for rank, name := range map[store.Rank]string{store.RankFirst: "first", store.RankPlain: "plain", store.RankAnswer: "answer", store.RankLast: "last"} {
		m.stored.registry.MustRegister(prometheus.NewGaugeFunc(prometheus.GaugeOpts{
			Name: "countersign_outbox_waiting", Help: "Messages that Slack does not show yet as they should be. Not counted beyond 10000.",
			ConstLabels: prometheus.Labels{"rank": name},
		}, func() float64 { return timersSet(s, rank.Timer()) }))
	}
}

// toolMetrics collects the metrics of the MCP servers, and of the tools that differ from their pins.
type toolMetrics struct{ *catalog.Catalog }

var (
	serverUp       = prometheus.NewDesc("countersign_server_up", "1 while an MCP server of the policy is connected.", []string{"server"}, nil)
	serverTools    = prometheus.NewDesc("countersign_server_tools", "Tools that an MCP server offered when it was listed last.", []string{"server"}, nil)
	serverRestarts = prometheus.NewDesc("countersign_server_restarts_total", "Connections to an MCP server after the first one. The count starts again when the bot starts or the server's entry in the policy changes.", []string{"server"}, nil)
	serverCalls    = prometheus.NewDesc("countersign_server_calls_total", "Calls to tools of MCP servers: answered, failed, or unknown.", []string{"server", "outcome"}, nil)
	toolsBlocked   = prometheus.NewDesc("countersign_tools_blocked", "Tools of a source that are not what the operator pinned.", []string{"source"}, nil)
)

// Describe implements prometheus.Collector.
func (c toolMetrics) Describe(to chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{serverUp, serverTools, serverRestarts, serverCalls, toolsBlocked} {
		to <- d
	}
}

// Collect sends the current figures of the servers. For each source, Collect also sends the number of blocked tools,
// even if the number is 0.
func (c toolMetrics) Collect(to chan<- prometheus.Metric) {
	for _, s := range c.Servers() {
		up := 0.0
		if s.Connected {
			up = 1
		}
		to <- prometheus.MustNewConstMetric(serverUp, prometheus.GaugeValue, up, s.Server)
		to <- prometheus.MustNewConstMetric(serverTools, prometheus.GaugeValue, float64(s.Tools), s.Server)
		to <- prometheus.MustNewConstMetric(serverRestarts, prometheus.CounterValue, float64(s.Restarts), s.Server)
	}
	for calls, n := range c.Calls() {
		to <- prometheus.MustNewConstMetric(serverCalls, prometheus.CounterValue, float64(n), calls.Server, string(calls.Outcome))
	}
	blocked := map[string]int{}
	for _, source := range c.Sources() {
		blocked[source] = 0
	}
	all, _ := c.Status()
	for _, t := range all {
		if t.Tool.Blocked != "" {
			blocked[t.Tool.Source]++
		}
	}
	for source, n := range blocked {
		to <- prometheus.MustNewConstMetric(toolsBlocked, prometheus.GaugeValue, float64(n), source)
	}
}

// WatchTools adds metrics of the MCP servers and of the tools.
func (m *Metrics) WatchTools(c *catalog.Catalog) { m.registry.MustRegister(toolMetrics{c}) }

// Policies reports which policy this process uses.
type Policies interface {
	Number() uint64           // number of the stored change (of the policy or the pins) that this process uses
	Usable() bool             // whether this process can use the policy in force
	Differs() map[string]bool // for each file: true if the file differs from the content in force
}

// policyMetrics shows which policy this process uses, and whether the policy in the process's files is in force.
type policyMetrics struct{ Policies }

var (
	policyNumber  = prometheus.NewDesc("countersign_policy_change", "The number of the change of the policy or the pins that this process uses. It is the same in all processes, except for a second after a change.", nil, nil)
	policyUsable  = prometheus.NewDesc("countersign_policy_usable", "0 while this process can't use the policy in force, and so decides and runs nothing.", nil, nil)
	policyDiffers = prometheus.NewDesc("countersign_policy_file_differs", "1 while a file of this process is not the one in force: it was refused, or it is outdated.", []string{"file"}, nil)
)

// Describe implements prometheus.Collector.
func (c policyMetrics) Describe(to chan<- *prometheus.Desc) {
	to <- policyNumber
	to <- policyUsable
	to <- policyDiffers
}

// Collect implements prometheus.Collector.
func (c policyMetrics) Collect(to chan<- prometheus.Metric) {
	is := func(b bool) float64 {
		if b {
			return 1
		}
		return 0
	}
	to <- prometheus.MustNewConstMetric(policyNumber, prometheus.GaugeValue, float64(c.Number()))
	to <- prometheus.MustNewConstMetric(policyUsable, prometheus.GaugeValue, is(c.Usable()))
	for name, differs := range c.Differs() {
		to <- prometheus.MustNewConstMetric(policyDiffers, prometheus.GaugeValue, is(differs), name)
	}
}

// WatchPolicies adds metrics of the policy in force.
func (m *Metrics) WatchPolicies(ps Policies) { m.registry.MustRegister(policyMetrics{ps}) }

// WatchPause adds a metric of the pause.
func (m *Metrics) WatchPause(wf *workflow.Workflow) {
	m.stored.registry.MustRegister(prometheus.NewGaugeFunc(prometheus.GaugeOpts{
		Name: "countersign_paused", Help: "1 while everything is paused: no tool runs and no model is called.",
	}, func() float64 {
		ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
		defer cancel()
		p, err := wf.Views.Paused(ctx)
		switch {
		case err != nil:
			return math.NaN()
		case p.On:
			return 1
		}
		return 0
	}))
}

// CountCaller counts one answer to another agent.
func (m *Metrics) CountCaller(client, operation string, status int) {
	m.callers.WithLabelValues(client, operation, strconv.Itoa(status)).Inc()
}

// CountWebhook counts one delivery to a client's webhook.
func (m *Metrics) CountWebhook(client, outcome string) {
	m.webhooks.WithLabelValues(client, outcome).Inc()
}

// WatchGateway adds the metric of the connections that wait for a decision.
func (m *Metrics) WatchGateway(waiting func() int) {
	m.registry.MustRegister(prometheus.NewGaugeFunc(prometheus.GaugeOpts{
		Name: "countersign_gateway_waiting", Help: "Connections of other agents that wait for a decision.",
	}, func() float64 { return float64(waiting()) }))
}

// feedbackMetrics shows how people rated the agents' answers. feedbackMetrics reads the store at each request, so the
// values survive a restart.
type feedbackMetrics struct {
	workflow *workflow.Workflow
	log      *slog.Logger
	desc     *prometheus.Desc
}

// WatchFeedback adds the metrics of ratings.
func (m *Metrics) WatchFeedback(wf *workflow.Workflow, log *slog.Logger) {
	m.stored.registry.MustRegister(feedbackMetrics{wf, log, prometheus.NewDesc("countersign_answer_feedback", "Ratings of answers by people, the last one of each person: good, or poor.", []string{"agent", "rating"}, nil)})
}

func (r feedbackMetrics) Describe(out chan<- *prometheus.Desc) { out <- r.desc }

func (r feedbackMetrics) Collect(out chan<- prometheus.Metric) {
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	all, err := r.workflow.Views.Feedback(ctx)
	if err != nil {
		r.log.WarnContext(ctx, "the ratings of answers can't be read", "error", err)
		return
	}
	for agent, n := range all {
		out <- prometheus.MustNewConstMetric(r.desc, prometheus.GaugeValue, float64(n.Good), agent, "good")
		out <- prometheus.MustNewConstMetric(r.desc, prometheus.GaugeValue, float64(n.Poor), agent, "poor")
	}
}

// WatchDisk adds metrics of a full disk, and of a missing store file.
func (m *Metrics) WatchDisk(wf *workflow.Workflow) {
	m.registry.MustRegister(prometheus.NewGaugeFunc(prometheus.GaugeOpts{
		Name: "countersign_store_moved", Help: "1 while the store's file is not where it was opened: nothing is decided and nothing runs.",
	}, func() float64 {
		if wf.InPlace() == nil {
			return 0
		}
		return 1
	}))
	m.registry.MustRegister(prometheus.NewGaugeFunc(prometheus.GaugeOpts{
		Name: "countersign_disk_full", Help: "1 while the disk below the store is full: nothing is decided and nothing runs.",
	}, func() float64 {
		if wf.Full().IsZero() {
			return 0
		}
		return 1
	}))
}

// WatchStore adds a metric that says whether the store works. The function check is the check of /readyz.
func (m *Metrics) WatchStore(check func(context.Context) error) {
	m.stored.check = check
	m.registry.MustRegister(prometheus.NewGaugeFunc(prometheus.GaugeOpts{
		Name: "countersign_store_up", Help: "1 while the store can be read and takes writes. Otherwise nothing is decided and nothing runs.",
	}, func() float64 {
		if m.stored.failing.Load() {
			return 0
		}
		return 1
	}))
}

// WatchStall adds a metric of the age of the oldest running write transaction.
func (m *Metrics) WatchStall(s store.Store) {
	w, ok := s.(interface{ Stalled() time.Duration })
	if !ok {
		return
	}
	m.registry.MustRegister(prometheus.NewGaugeFunc(prometheus.GaugeOpts{
		Name: "countersign_store_transaction_seconds", Help: "Age in seconds of the oldest running write transaction; 0 if there is none.",
	}, func() float64 { return w.Stalled().Seconds() }))
}

// WatchReplicas adds metrics of the processes that work on the store.
func (m *Metrics) WatchReplicas(r store.Replica) {
	m.registry.MustRegister(prometheus.NewGaugeFunc(prometheus.GaugeOpts{
		Name: "countersign_replicas", Help: "Processes that work on the store, as this one knows; 1 with a store in a file.",
	}, func() float64 { return float64(r.Alive()) }), prometheus.NewGaugeFunc(prometheus.GaugeOpts{
		Name: "countersign_shares", Help: "Shares of the pending work that this process has, out of 64. All processes together have 64, except for seconds after one of them ends.",
	}, func() float64 { return float64(bits.OnesCount64(uint64(r.Shares()))) }))
}

// WatchClock adds a metric of the difference between the database's clock and this machine's. If the store is a file,
// offset is nil.
func (m *Metrics) WatchClock(offset func() time.Duration) {
	m.registry.MustRegister(prometheus.NewGaugeFunc(prometheus.GaugeOpts{
		Name: "countersign_clock_offset_seconds", Help: "The database's time minus this machine's time; 0 below one second, and with a store in a file.",
	}, func() float64 {
		if offset == nil {
			return 0
		}
		return offset().Seconds()
	}))
}

// WatchDamage adds a metric of the damaged rows.
func (m *Metrics) WatchDamage(s store.Store) {
	m.registry.MustRegister(prometheus.NewGaugeFunc(prometheus.GaugeOpts{
		Name: "countersign_store_damaged", Help: "Rows and pages of the store that are known to be damaged and not dealt with.",
	}, func() float64 {
		damaged, _ := store.DamageOf(s)
		return float64(len(damaged))
	}))
}

// retained has the metrics of the data that retention erases.
type retained struct {
	conversations, records prometheus.Counter
	last                   prometheus.Gauge
}

func newRetained() retained {
	return retained{
		conversations: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "countersign_retention_conversations_total", Help: "Conversations that were erased by their age.",
		}),
		records: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "countersign_retention_records_total", Help: "Records of the history that were removed by their age.",
		}),
		last: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "countersign_retention_last_run_timestamp_seconds", Help: "When retention last finished, in seconds since 1970; 0 before the first time.",
		}),
	}
}

// CountRetained adds to the metrics how many conversations and records one round of retention erased. The parameter
// over is true if the round was completed.
func (m *Metrics) CountRetained(done retention.Removed, over bool) {
	m.retained.conversations.Add(float64(done.Conversations))
	m.retained.records.Add(float64(done.Records))
	if over {
		m.retained.last.SetToCurrentTime()
	}
}

// CountWrite counts one transaction of the store.
func (m *Metrics) CountWrite(took time.Duration) { m.wrote.Observe(took.Seconds()) }

// Gatherer collects all metrics.
func (m *Metrics) Gatherer() prometheus.Gatherer {
	return prometheus.GathererFunc(func() ([]*dto.MetricFamily, error) {
		stored := m.stored.gather() // before the registry, which has the metrics about this read and the check of the store
		return prometheus.Gatherers{m.registry, stored}.Gather()
	})
}

// Describe sends the descriptions of all metrics.
func (m *Metrics) Describe(to chan<- *prometheus.Desc) {
	m.registry.Describe(to)
	m.stored.registry.Describe(to)
}
