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
	"countersign/approvers/desk"
	"countersign/store"
)

// hasty is the time within which nobody has read a card that they approve.
const hasty = 3 * time.Second

// metrics are what /metrics of the admin address shows. docs/metrics.md explains each.
type metrics struct {
	policy   func() *approvers.Policy
	registry *prometheus.Registry
	took     *prometheus.HistogramVec
	quick    *prometheus.CounterVec
	requests *prometheus.CounterVec
	runs     *prometheus.CounterVec
	operator *prometheus.CounterVec
	calls    *prometheus.CounterVec // of Slack
	heard    *prometheus.CounterVec // Slack's requests over HTTP
	retained retained
}

func newMetrics(s store.Store, policy func() *approvers.Policy) *metrics {
	m := &metrics{
		policy: policy, registry: prometheus.NewRegistry(), retained: newRetained(),
		took: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "countersign_decision_seconds", Help: "Time from when a card was shown to the decision on it.",
			Buckets: []float64{1, hasty.Seconds(), 10, 30, 60, 180, 600, 1800, 3600, 4 * 3600, 24 * 3600},
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
		calls: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "countersign_slack_calls_total", Help: "Calls of Slack's Web API: answered, limited, failed, or put off without being made.",
		}, []string{"method", "outcome"}),
	}
	m.heard = prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "countersign_slack_requests_total", Help: "Requests that came in where Slack's are expected, by the status of the answer.",
	}, []string{"status"})
	waiting := prometheus.NewGaugeFunc(prometheus.GaugeOpts{
		Name: "countersign_requests_waiting", Help: "Requests that wait for people or for their run. Not counted beyond 10000.",
	}, func() float64 { return timersSet(s, store.TimerExpire) })
	m.registry.MustRegister(m.took, m.quick, m.requests, m.runs, m.operator, m.calls, m.heard, m.retained.conversations, m.retained.records, m.retained.last, waiting,
		collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	return m
}

func (m *metrics) handler() http.Handler {
	return promhttp.HandlerFor(m.registry, promhttp.HandlerOpts{})
}

// count takes one event in.
func (m *metrics) count(e desk.Event) {
	tool := m.tool(e.Tool)
	switch {
	case e.Decision != nil:
		d := *e.Decision
		if d.By.Login() != "" {
			m.operator.WithLabelValues(string(d.Kind), tool).Inc()
		}
		if d.Took <= 0 {
			return // nobody knows since when it was shown
		}
		m.took.WithLabelValues(string(d.Kind), d.Role, tool).Observe(d.Took.Seconds())
		if isHasty(d.Kind, d.Took) {
			m.quick.WithLabelValues(d.Role, tool).Inc()
		}
	case e.Ended != "":
		m.requests.WithLabelValues(string(e.Ended), tool).Inc()
	case e.Ran != "":
		m.runs.WithLabelValues(string(e.Ran), tool).Inc()
	}
}

// isHasty reports whether a decision let something through that can't have been read. Whoever rejects quickly does no harm.
func isHasty(kind approvers.DecisionKind, took time.Duration) bool {
	return kind == approvers.Approve && took < hasty
}

// tool bounds how many values the label has: a name that the policy does not have is "other".
func (m *metrics) tool(name string) string {
	if _, known := m.policy().Tool(name, ""); !known {
		return "other"
	}
	return name
}

// mostWaiting bounds what one look at /metrics reads of the store.
const mostWaiting = 10_000

// timersSet counts the timers of a kind: each request that waits has one to its deadline, and each surface that waits to be shown has one.
func timersSet(s store.Store, kind store.TimerKind) float64 {
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	var timers []store.Timer
	err := s.View(ctx, func(r store.Reader) (err error) {
		timers, err = r.Timers(kind, mostWaiting)
		return err
	})
	if err != nil {
		return math.NaN() // what can't be read is not 0
	}
	return float64(len(timers))
}

// watchSeal adds how far the history is sealed, and how many heads are not where they should be.
func (m *metrics) watchSeal(s store.Store, sealer *sealer) {
	m.registry.MustRegister(prometheus.NewGaugeFunc(prometheus.GaugeOpts{
		Name: "countersign_audit_unsealed", Help: "Records of the history that no signed head covers. Not counted beyond 10000.",
	}, func() float64 { return unsealed(s) }))
	for _, c := range sealer.couriers {
		m.registry.MustRegister(prometheus.NewGaugeFunc(prometheus.GaugeOpts{
			Name: "countersign_audit_heads_waiting", Help: "Signed heads that were not brought to a place outside of the store yet.",
			ConstLabels: prometheus.Labels{"to": c.to.String()},
		}, func() float64 {
			n, err := c.waiting(context.Background())
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
