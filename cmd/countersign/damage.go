package main

import (
	"context"
	"fmt"
	"log/slog"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"countersign/cmd/countersign/cli"
	"countersign/internal/visible"
	"countersign/store"
)

// mostNamed is the maximum number of damaged rows in a line of /readyz.
const mostNamed = 5

// watchDamage logs damage that the store finds.
func watchDamage(s store.Store, log *slog.Logger) {
	in, ok := s.(store.Inspected)
	if !ok {
		return
	}
	in.OnDamage(func(x store.Damage) {
		if x.Mended {
			log.Warn("the store was damaged, and was mended", "bucket", x.Bucket, "key", x.Key, "why", x.Why)
			return
		}
		log.Error("the store is damaged: whatever needs this fails, and everything else goes on. docs/operate.md says what to do", "bucket", x.Bucket, "key", x.Key, "why", x.Why)
	})
}

// The time of the first inspection after the start, and the interval of further ones.
const (
	inspectFirst = time.Minute
	inspectAgain = 6 * time.Hour
)

// inspect searches the whole store for damage. The log, /readyz and the metrics report it.
func inspect(ctx context.Context, s store.Store, log *slog.Logger) error {
	in, ok := s.(store.Inspected)
	if !ok {
		return nil
	}
	for next := inspectFirst; ; next = inspectAgain {
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(next):
		}
		if err := in.Inspect(ctx); err != nil && ctx.Err() == nil {
			log.Warn("the store could not be inspected", "error", err)
		}
	}
}

// undamaged reports damage in the store on /readyz.
func undamaged(s store.Store) func(context.Context) error {
	return func(context.Context) error {
		damaged, _ := store.DamageOf(s)
		if len(damaged) == 0 {
			return nil
		}
		return fmt.Errorf("%s: %s. docs/operate.md says what to do", cli.Count(len(damaged), "damaged row"), theFirst(damaged))
	}
}

// unmended reports on /readyz which damage was repaired since the store was opened. It is only shown, because nothing
// depends on it any more.
func unmended(s store.Store) func(context.Context) error {
	return func(context.Context) error {
		_, mended := store.DamageOf(s)
		if len(mended) == 0 {
			return nil
		}
		return fmt.Errorf("the store was damaged, and was mended: %s. Look at the disk below it", theFirst(mended))
	}
}

// theFirst names the first damaged rows.
func theFirst(list []store.Damage) string {
	var parts []string
	for _, x := range list[:min(len(list), mostNamed)] {
		parts = append(parts, visible.Line(x.String()))
	}
	if more := len(list) - mostNamed; more > 0 {
		parts = append(parts, fmt.Sprintf("and %d more", more))
	}
	return strings.Join(parts, "; ")
}

// watchDamage adds a metric of the damaged rows.
func (m *metrics) watchDamage(s store.Store) {
	m.registry.MustRegister(prometheus.NewGaugeFunc(prometheus.GaugeOpts{
		Name: "countersign_store_damaged", Help: "Rows and pages of the store that are known to be damaged and not dealt with.",
	}, func() float64 {
		damaged, _ := store.DamageOf(s)
		return float64(len(damaged))
	}))
}
