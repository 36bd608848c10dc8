package metrics

import (
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"
)

// readFor limits how long a scrape waits for the metrics that are read from the store. Prometheus usually gives up after
// ten seconds, and would then have no metrics at all.
const readFor = 4 * time.Second

// storeReads collects the metrics that are read from the store. If the store does not answer in time, they are left out
// of the scrape.
type storeReads struct {
	registry *prometheus.Registry
	mu       sync.Mutex
	running  chan struct{} // closed at the end of the current collection; nil: no collection runs
	families []*dto.MetricFamily
	err      error
	late     atomic.Bool // the last scrape has left out the metrics
}

// answers returns the metric that says whether the metrics were left out.
func (s *storeReads) answers() prometheus.Collector {
	return prometheus.NewGaugeFunc(prometheus.GaugeOpts{
		Name: "countersign_store_answers", Help: "0 while the store does not answer within 4 s: the metrics that are read from it are then left out.",
	}, func() float64 {
		if s.late.Load() {
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
			families, err := s.registry.Gather()
			s.mu.Lock()
			defer s.mu.Unlock()
			s.families, s.err, s.running = families, err, nil
			close(ended)
		}(s.running)
	}
	ended := s.running
	s.mu.Unlock()
	timer := time.NewTimer(readFor)
	defer timer.Stop()
	select {
	case <-ended:
		s.late.Store(false)
	case <-timer.C:
		s.late.Store(true)
		return prometheus.NewRegistry()
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	families, err := s.families, s.err
	return prometheus.GathererFunc(func() ([]*dto.MetricFamily, error) { return families, err })
}
