package main

import (
	"context"
	"log/slog"

	"github.com/prometheus/client_golang/prometheus"

	"countersign/approvers/workflow"
)

// retainEvery is the number of rounds between searches for old data, which read all chains of the history.
const retainEvery = 36

// retain erases data beyond the policy's retention, and counts it.
func retain(ctx context.Context, wf *workflow.Workflow, m *metrics, log *slog.Logger) error {
	done, err := wf.Retain(ctx)
	if done.Conversations+done.Chains > 0 {
		log.Info("erased by age, as the policy says", "conversations", done.Conversations, "chains of the history", done.Chains, "records", done.Records)
	}
	m.retained.count(done, err == nil)
	return err
}

// retained are the metrics of data erased by retention.
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

// count counts the erased data of one round. over means that the round was completed.
func (r retained) count(done workflow.Retained, over bool) {
	r.conversations.Add(float64(done.Conversations))
	r.records.Add(float64(done.Records))
	if over {
		r.last.SetToCurrentTime()
	}
}
