package metrics

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"

	"countersign/store"
)

// readFor limits how long a scrape waits for the metrics that are read from the store. Prometheus usually gives up after
// ten seconds, and would then have no metrics at all.
const readFor = 4 * time.Second

// storeReads collects the metrics that are read from the store. If the store can't be read, or does not answer in time,
// they are left out of the scrape.
type storeReads struct {
	store    store.Store
	registry *prometheus.Registry
	mu       sync.Mutex
	running  chan struct{} // closed at the end of the current collection; nil: no collection runs
	unread   bool          // the last collection could not read the store
	families []*dto.MetricFamily
	err      error
	leftOut  atomic.Bool // the last scrape has left out the metrics
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

// gather collects the metrics. While an earlier collection runs, gather starts no other.
func (s *storeReads) gather() prometheus.Gatherer {
	s.mu.Lock()
	if s.running == nil {
		s.running = make(chan struct{})
		go func(ended chan struct{}) {
			var families []*dto.MetricFamily
			err := s.read()
			unread := err != nil
			if !unread { // otherwise, each metric would log an error
				families, err = s.registry.Gather()
			}
			s.mu.Lock()
			defer s.mu.Unlock()
			s.unread, s.families, s.err, s.running = unread, families, err, nil
			close(ended)
		}(s.running)
	}
	ended := s.running
	s.mu.Unlock()
	timer := time.NewTimer(readFor)
	defer timer.Stop()
	select {
	case <-ended:
	case <-timer.C:
		s.leftOut.Store(true)
		return prometheus.NewRegistry()
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.leftOut.Store(s.unread)
	if s.unread {
		return prometheus.NewRegistry()
	}
	families, err := s.families, s.err
	return prometheus.GathererFunc(func() ([]*dto.MetricFamily, error) { return families, err })
}

// read checks that the store can be read.
func (s *storeReads) read() error {
	ctx, cancel := context.WithTimeout(context.Background(), readFor)
	defer cancel()
	return s.store.View(ctx, func(r store.Reader) error {
		_, err := r.Setting(store.SettingDiskSpace)
		return store.IgnoreNotFound(err)
	})
}
