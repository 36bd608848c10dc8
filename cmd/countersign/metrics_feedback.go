package main

import (
	"context"
	"log/slog"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"countersign/approvers/workflow"
)

// feedbackMetrics shows how people rated the agents' answers. It reads the store at each request, so the values survive
// a restart.
type feedbackMetrics struct {
	workflow *workflow.Workflow
	log      *slog.Logger
	desc     *prometheus.Desc
}

// watchFeedback adds the metrics of ratings.
func (m *metrics) watchFeedback(wf *workflow.Workflow, log *slog.Logger) {
	m.registry.MustRegister(feedbackMetrics{wf, log, prometheus.NewDesc("countersign_answer_feedback", "Opinions of people on answers, each person's last one: good, or poor.", []string{"agent", "rating"}, nil)})
}

func (r feedbackMetrics) Describe(out chan<- *prometheus.Desc) { out <- r.desc }

func (r feedbackMetrics) Collect(out chan<- prometheus.Metric) {
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	all, err := r.workflow.Views.Feedback(ctx)
	if err != nil {
		r.log.Warn("the ratings of answers can't be read", "error", err)
		return
	}
	for agent, n := range all {
		out <- prometheus.MustNewConstMetric(r.desc, prometheus.GaugeValue, float64(n.Good), agent, "good")
		out <- prometheus.MustNewConstMetric(r.desc, prometheus.GaugeValue, float64(n.Poor), agent, "poor")
	}
}
