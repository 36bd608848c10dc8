package main

import (
	"context"
	"fmt"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"countersign/approvers/desk"
	"countersign/store"
)

// takesWrites says why the store can't do its work now.
func takesWrites(ctx context.Context, d *desk.Desk) error {
	if since := d.Full(); !since.IsZero() {
		return fmt.Errorf("the disk has been full since %s: free some space; nothing needs to be started again", since.Format(time.RFC3339))
	}
	return d.Store.View(ctx, func(store.Reader) error { return nil })
}

// watchDisk shows whether the disk below the store is full.
func (m *metrics) watchDisk(d *desk.Desk) {
	m.registry.MustRegister(prometheus.NewGaugeFunc(prometheus.GaugeOpts{
		Name: "countersign_disk_full", Help: "1 while the disk below the store is full: nothing is decided and nothing runs.",
	}, func() float64 {
		if d.Full().IsZero() {
			return 0
		}
		return 1
	}))
}
