package main

import (
	"context"
	"fmt"
	"math"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"countersign/approvers/desk"
)

// runs says on /readyz whether everything is paused. The bot is ready all the same: it hears, and takes decisions.
func runs(d *desk.Desk) func(context.Context) error {
	return func(ctx context.Context) error {
		p, err := d.Paused(ctx)
		if err != nil || !p.On {
			return err
		}
		why := ""
		if p.Reason != "" {
			why = ": " + onOneLine(p.Reason)
		}
		return fmt.Errorf("everything is paused by %s since %s%s", p.By, p.At.Format(time.RFC3339), why)
	}
}

// watchPause shows whether everything is paused.
func (m *metrics) watchPause(d *desk.Desk) {
	m.registry.MustRegister(prometheus.NewGaugeFunc(prometheus.GaugeOpts{
		Name: "countersign_paused", Help: "1 while everything is paused: no tool runs and no model is called.",
	}, func() float64 {
		ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
		defer cancel()
		p, err := d.Paused(ctx)
		switch {
		case err != nil:
			return math.NaN()
		case p.On:
			return 1
		}
		return 0
	}))
}
