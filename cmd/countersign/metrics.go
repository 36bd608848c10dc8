package main

import (
	"context"
	"errors"
	"math"
	"net/http"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"countersign/approvers"
	"countersign/approvers/audit"
	"countersign/approvers/workflow"
	"countersign/store"
)

// metrics are the metrics at /metrics of the admin address. docs/metrics.md explains each.
type metrics struct {
	policy       func() *approvers.Policy
	registry     *prometheus.Registry
	took         *prometheus.HistogramVec
	quick        *prometheus.CounterVec
	requests     *prometheus.CounterVec
	runs         *prometheus.CounterVec
	operator     *prometheus.CounterVec
	answers      *prometheus.HistogramVec
	calls        *prometheus.CounterVec // calls of Slack's Web API
	httpRequests *prometheus.CounterVec // Slack's HTTP requests
	retained     retained
}

func newMetrics(s store.Store, policy func() *approvers.Policy) *metrics {
	m := &metrics{
		policy: policy, registry: prometheus.NewRegistry(), retained: newRetained(),
		took: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "countersign_decision_seconds", Help: "Time from when a card was shown to the decision on it.",
			Buckets: []float64{1, audit.QuickApproval.Seconds(), 10, 30, 60, 180, 600, 1800, 3600, 4 * 3600, 24 * 3600},
		}, []string{"kind", "role", "tool"}),
		quick: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "countersign_decisions_quick_total", Help: "Approvals in less than 3 s after the card was shown.",
		}, []string{"role", "tool"}),
		requests: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "countersign_requests_total", Help: "Requests that came to an end, by the state in which they did.",
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
			Name: "countersign_slack_calls_total", Help: "Calls of Slack's Web API: answered, limited, failed, or put off without being made.",
		}, []string{"method", "outcome"}),
	}
	m.httpRequests = prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "countersign_slack_requests_total", Help: "Requests that came in where Slack's are expected, by the status of the answer.",
	}, []string{"status"})
	waiting := prometheus.NewGaugeFunc(prometheus.GaugeOpts{
		Name: "countersign_requests_waiting", Help: "Requests that wait for people or for their run. Not counted beyond 10000.",
	}, func() float64 { return timersSet(s, store.TimerExpire) })
	m.registry.MustRegister(m.took, m.quick, m.requests, m.runs, m.operator, m.answers, m.calls, m.httpRequests, m.retained.conversations, m.retained.records, m.retained.last, waiting,
		collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	return m
}

func (m *metrics) handler() http.Handler {
	return promhttp.HandlerFor(m.registry, promhttp.HandlerOpts{})
}

// count counts one event.
func (m *metrics) count(e workflow.Event) {
	tool := m.tool(e.Tool)
	switch {
	case e.Decision != nil:
		d := *e.Decision
		if d.By.Login() != "" {
			m.operator.WithLabelValues(string(d.Kind), tool).Inc()
		}
		if d.Took <= 0 {
			return // unknown when it was shown
		}
		m.took.WithLabelValues(string(d.Kind), d.Role, tool).Observe(d.Took.Seconds())
		if audit.IsQuick(d.Kind, d.Took) {
			m.quick.WithLabelValues(d.Role, tool).Inc()
		}
	case e.Ended != "":
		m.requests.WithLabelValues(string(e.Ended), tool).Inc()
	case e.Ran != "":
		m.runs.WithLabelValues(string(e.Ran), tool).Inc()
	case e.Answer != nil:
		m.answers.WithLabelValues("end").Observe(e.Answer.SinceEnd.Seconds())
		if e.Answer.SinceRun > 0 {
			m.answers.WithLabelValues("run").Observe(e.Answer.SinceRun.Seconds())
		}
	}
}

// tool limits the values of the label: a name that the policy does not have becomes "other".
func (m *metrics) tool(name string) string {
	if _, known := m.policy().Tool(name, ""); !known {
		return "other"
	}
	return name
}

// mostWaiting limits how many rows one request to /metrics reads.
const mostWaiting = 10_000

// timersSet counts the timers of a kind: each waiting request has one for its deadline, and each unsent outbox message
// has one.
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

// watchSeal adds metrics of the unsealed records, and of the heads that have not reached their destination.
func (m *metrics) watchSeal(s store.Store, sealer *audit.Sealer) {
	m.registry.MustRegister(prometheus.NewGaugeFunc(prometheus.GaugeOpts{
		Name: "countersign_audit_unsealed", Help: "Records of the history that no signed head covers. Not counted beyond 10000.",
	}, func() float64 { return unsealed(s) }))
	for _, c := range sealer.Shippers {
		m.registry.MustRegister(prometheus.NewGaugeFunc(prometheus.GaugeOpts{
			Name: "countersign_audit_heads_waiting", Help: "Signed heads that were not brought to a place outside of the store yet.",
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

// unsealed counts the records that no head covers.
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
