package main

import (
	"context"
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
}

func newMetrics(s store.Store, policy func() *approvers.Policy) *metrics {
	m := &metrics{
		policy: policy, registry: prometheus.NewRegistry(),
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
	}
	waiting := prometheus.NewGaugeFunc(prometheus.GaugeOpts{
		Name: "countersign_requests_waiting", Help: "Requests that wait for people or for their run. Not counted beyond 10000.",
	}, func() float64 { return waitingRequests(s) })
	m.registry.MustRegister(m.took, m.quick, m.requests, m.runs, waiting,
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

// waitingRequests counts the requests that wait, by their deadlines.
func waitingRequests(s store.Store) float64 {
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	var deadlines []store.Timer
	err := s.View(ctx, func(r store.Reader) (err error) {
		deadlines, err = r.Timers(store.TimerExpire, mostWaiting)
		return err
	})
	if err != nil {
		return math.NaN() // what can't be read is not 0
	}
	return float64(len(deadlines))
}
