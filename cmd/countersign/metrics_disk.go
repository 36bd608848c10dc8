package main

import (
	"context"
	"fmt"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"countersign/approvers/workflow"
	"countersign/store"
)

// takesWrites returns an error while the store can't accept writes.
func takesWrites(ctx context.Context, wf *workflow.Workflow) error {
	if since := wf.Full(); !since.IsZero() {
		return fmt.Errorf("the disk has been full since %s: free some space; nothing needs to be started again", since.Format(time.RFC3339))
	}
	if err := stall(wf.Store); err != nil {
		return err
	}
	if err := wf.InPlace(); err != nil {
		return err
	}
	return wf.Store.View(ctx, func(store.Reader) error { return nil })
}

// watchDisk adds metrics of a full disk, and of a missing store file.
func (m *metrics) watchDisk(wf *workflow.Workflow) {
	m.registry.MustRegister(prometheus.NewGaugeFunc(prometheus.GaugeOpts{
		Name: "countersign_store_moved", Help: "1 while the store's file is not where it was opened: nothing is decided and nothing runs.",
	}, func() float64 {
		if wf.InPlace() == nil {
			return 0
		}
		return 1
	}))
	m.registry.MustRegister(prometheus.NewGaugeFunc(prometheus.GaugeOpts{
		Name: "countersign_disk_full", Help: "1 while the disk below the store is full: nothing is decided and nothing runs.",
	}, func() float64 {
		if wf.Full().IsZero() {
			return 0
		}
		return 1
	}))
}
