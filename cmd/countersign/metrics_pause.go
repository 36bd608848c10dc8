package main

import (
	"context"
	"fmt"
	"math"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"countersign/approvers/workflow"
	"countersign/internal/visible"
)

// runs reports a pause on /readyz. The bot stays ready: it receives messages and decisions.
func runs(wf *workflow.Workflow) func(context.Context) error {
	return func(ctx context.Context) error {
		p, err := wf.Views.Paused(ctx)
		if err != nil || !p.On {
			return err
		}
		why := ""
		if p.Reason != "" {
			why = ": " + visible.Line(p.Reason)
		}
		return fmt.Errorf("everything is paused by %s since %s%s", p.By, p.At.Format(time.RFC3339), why)
	}
}

// watchPause adds a metric of the pause.
func (m *metrics) watchPause(wf *workflow.Workflow) {
	m.registry.MustRegister(prometheus.NewGaugeFunc(prometheus.GaugeOpts{
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
