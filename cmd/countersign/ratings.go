package main

import (
	"context"
	"log/slog"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"countersign/approvers/desk"
)

// ratings shows what people thought of the agents' answers. It is read whenever somebody asks: the store knows it, also after a restart.
type ratings struct {
	desk *desk.Desk
	log  *slog.Logger
	desc *prometheus.Desc
}

// watchRatings shows how the agents' answers were rated.
func (m *metrics) watchRatings(d *desk.Desk, log *slog.Logger) {
	m.registry.MustRegister(ratings{d, log, prometheus.NewDesc("countersign_answers_rated", "Opinions of people on answers, each person's last one: good, or poor.", []string{"agent", "rating"}, nil)})
}

func (r ratings) Describe(out chan<- *prometheus.Desc) { out <- r.desc }

func (r ratings) Collect(out chan<- prometheus.Metric) {
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	all, err := r.desk.Ratings(ctx)
	if err != nil {
		r.log.Warn("the ratings of answers can't be read", "error", err)
		return
	}
	for agent, n := range all {
		out <- prometheus.MustNewConstMetric(r.desc, prometheus.GaugeValue, float64(n.Good), agent, "good")
		out <- prometheus.MustNewConstMetric(r.desc, prometheus.GaugeValue, float64(n.Poor), agent, "poor")
	}
}
