package metrics

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"
	"golang.org/x/sync/singleflight"

	"countersign/store"
)

// readFor limits how long a scrape waits for the metrics that are read from the store. Prometheus usually gives up after
// ten seconds, and would then have no metrics at all.
const readFor = 4 * time.Second

// storeReads collects the metrics that are read from the store, and checks the store. If the store can't be read, or
// does not answer in time, the metrics are left out of the scrape. While an earlier read or check runs, no other starts.
type storeReads struct {
	store    store.Store
	registry *prometheus.Registry
	check    func(context.Context) error // says whether the store works; nil: WatchStore was not called
	running  singleflight.Group
	leftOut  atomic.Bool // the last scrape has left out the metrics
	failing  atomic.Bool // the last check failed, or has not ended in time
}

// answers returns the metric that says whether the metrics were left out.
func (s *storeReads) answers() prometheus.Collector {
	return prometheus.NewGaugeFunc(prometheus.GaugeOpts{
		Name: "countersign_store_answers", Help: "0 while the store can't be read, or does not answer within 4 s: the metrics that are read from it are then left out.",
	}, func() float64 {
		if s.leftOut.Load() {
			return 0
		}
		return 1
	})
}

// gather collects the metrics, and checks the store at the same time.
func (s *storeReads) gather() prometheus.Gatherer {
	ctx, cancel := context.WithTimeout(context.Background(), readFor)
	defer cancel()
	read := s.running.DoChan("read", func() (any, error) {
		if err := s.read(ctx); err != nil {
			return nil, err // otherwise, each metric would log an error
		}
		families, err := s.registry.Gather()
		return prometheus.GathererFunc(func() ([]*dto.MetricFamily, error) { return families, err }), nil
	})
	if s.check != nil {
		select {
		case r := <-s.running.DoChan("check", func() (any, error) { return nil, s.check(ctx) }):
			s.failing.Store(r.Err != nil)
		case <-ctx.Done():
			s.failing.Store(true)
		}
	}
	select {
	case r := <-read:
		if s.leftOut.Store(r.Err != nil); r.Err == nil {
			return r.Val.(prometheus.Gatherer)
		}
	case <-ctx.Done():
		s.leftOut.Store(true)
	}
	return prometheus.NewRegistry()
}

// read checks that the store can be read.
func (s *storeReads) read(ctx context.Context) error {
	return s.store.View(ctx, func(r store.Reader) error {
		_, err := r.Setting(store.SettingDiskSpace)
		return store.IgnoreNotFound(err)
	})
}
