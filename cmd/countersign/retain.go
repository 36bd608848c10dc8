package main

import (
	"context"
	"log/slog"

	"github.com/prometheus/client_golang/prometheus"

	"countersign/approvers/desk"
)

// retainEvery is at which of these times it is looked for what is too old: it goes through all chains of the history.
const retainEvery = 36

// retain erases what is older than the policy keeps it, and counts that.
func retain(ctx context.Context, d *desk.Desk, m *metrics, log *slog.Logger) error {
	done, err := d.Retain(ctx)
	if done.Conversations+done.Chains > 0 {
		log.Info("erased by age, as the policy says", "conversations", done.Conversations, "chains of the history", done.Chains, "records", done.Records)
	}
	m.retained.count(done, err == nil)
	return err
}

// retained are the metrics of what was erased by its age.
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
			Name: "countersign_retention_last_run_timestamp_seconds", Help: "When everything was last looked through for what is too old, in seconds since 1970; 0 before the first time.",
		}),
	}
}

// count takes in what was erased at one time. What stopped in between has counted, and is not over.
func (r retained) count(done desk.Retained, over bool) {
	r.conversations.Add(float64(done.Conversations))
	r.records.Add(float64(done.Records))
	if over {
		r.last.SetToCurrentTime()
	}
}
