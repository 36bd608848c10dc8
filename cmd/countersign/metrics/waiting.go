package metrics

import (
	"context"
	"log/slog"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"countersign/approvers"
	"countersign/approvers/workflow"
	"countersign/store"
)

// waitingMetrics shows the amount of waiting work, who has to act, and how long the work has waited. It also counts the
// messages that the bot can't deliver, delete or handle, because Slack refuses a call. The metrics are read from the
// store at each scrape, so all replicas report the same values.
type waitingMetrics struct {
	workflow *workflow.Workflow
	store    store.Store
	log      *slog.Logger
}

// mostPending limits how many requests one scrape reads. A scrape reads the oldest requests first.
const mostPending = 2000

var (
	requestsPending = prometheus.NewDesc("countersign_requests_pending", "Requests that wait for people, by the role of their stage and by risk. Counted among the 2000 oldest open requests.", []string{"role", "risk"}, nil)
	pendingSince    = prometheus.NewDesc("countersign_requests_pending_since_timestamp_seconds", "When the stage began that has waited longest, in seconds since 1970.", []string{"role", "risk"}, nil)
	cardsUnreached  = prometheus.NewDesc("countersign_requests_unreachable", "Requests that wait with a card that nobody who may decide can see, among the 2000 oldest open requests.", nil, nil)
	undeliveredMsgs = prometheus.NewDesc("countersign_messages_undelivered", "Messages that Slack refuses: refused (answers and questions), leftover (Slack does not delete them), deferred (messages of people whom Slack does not name).", []string{"kind"}, nil)
	channelsLost    = prometheus.NewDesc("countersign_channels_lost", "Channels of the policy in which the bot can't write.", nil, nil)
	unknownOpen     = prometheus.NewDesc("countersign_runs_unknown_open", "Runs with an unknown outcome, about which people are asked now. Not counted beyond 10000.", nil, nil)
)

// Describe implements prometheus.Collector.
func (c waitingMetrics) Describe(to chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{requestsPending, pendingSince, cardsUnreached, undeliveredMsgs, channelsLost, unknownOpen} {
		to <- d
	}
}

// Collect implements prometheus.Collector. If a read fails, Collect logs the error, and leaves out the remaining
// figures.
func (c waitingMetrics) Collect(to chan<- prometheus.Metric) {
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	gauge := func(d *prometheus.Desc, v float64, labels ...string) {
		to <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, v, labels...)
	}
	gauge(unknownOpen, timersSet(c.store, store.TimerLeave))
	var open []approvers.Request
	err := c.store.View(ctx, func(r store.Reader) (err error) {
		open, err = r.OpenRequests(store.RequestCursor{}, mostPending)
		return err
	})
	if err != nil {
		c.log.WarnContext(ctx, "the waiting requests can't be read for the metrics", "error", err)
		return
	}
	type key struct{ role, risk string }
	count, since, unreached := map[key]int{}, map[key]time.Time{}, 0
	for _, role := range c.workflow.Policy().Approvers { // roles for which nothing waits show 0
		count[key{role.Name, role.MaxRisk.String()}] = 0
	}
	for _, r := range open {
		if r.State != approvers.Pending {
			continue
		}
		k := key{r.CurrentStage().Approver, r.Plan.Risk.String()}
		began := r.StageAt
		if began.IsZero() {
			began = r.CreatedAt
		}
		if count[k]++; count[k] == 1 || began.Before(since[k]) {
			since[k] = began
		}
		if r.ReachesNobody() {
			unreached++
		}
	}
	for k, n := range count {
		gauge(requestsPending, float64(n), k.role, k.risk)
		if n > 0 {
			gauge(pendingSince, float64(since[k].UnixMilli())/1000, k.role, k.risk)
		}
	}
	gauge(cardsUnreached, float64(unreached))
	u, err := c.workflow.Views.Undelivered(ctx)
	if err != nil {
		c.log.WarnContext(ctx, "the undelivered messages can't be read for the metrics", "error", err)
		return
	}
	gauge(undeliveredMsgs, float64(len(u.Refused)), "refused")
	gauge(undeliveredMsgs, float64(len(u.Leftovers)), "leftover")
	gauge(undeliveredMsgs, float64(u.Deferred.Count), "deferred")
	lost, err := c.workflow.Views.LostChannels(ctx)
	if err != nil {
		c.log.WarnContext(ctx, "the lost channels can't be read for the metrics", "error", err)
		return
	}
	gauge(channelsLost, float64(len(lost)))
}

// WatchWaiting adds metrics of waiting work.
func (m *Metrics) WatchWaiting(wf *workflow.Workflow, s store.Store, log *slog.Logger) {
	m.stored.registry.MustRegister(waitingMetrics{wf, s, log})
}

// sized is a store that reports its size.
type sized interface {
	Size(context.Context) (bytes int64, err error)
}

var storeSize = prometheus.NewDesc("countersign_store_size_bytes", "Size of the store: of the used part of its file, or of the database.", nil, nil)

// sizeMetric shows the size of the store.
type sizeMetric struct {
	sized
	log *slog.Logger
}

// Describe implements prometheus.Collector.
func (c sizeMetric) Describe(to chan<- *prometheus.Desc) { to <- storeSize }

// Collect implements prometheus.Collector.
func (c sizeMetric) Collect(to chan<- prometheus.Metric) {
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	n, err := c.Size(ctx)
	if err != nil {
		c.log.WarnContext(ctx, "the size of the store can't be read for the metrics", "error", err)
		return
	}
	to <- prometheus.MustNewConstMetric(storeSize, prometheus.GaugeValue, float64(n))
}

// WatchSize adds a metric of the store's size.
func (m *Metrics) WatchSize(s store.Store, log *slog.Logger) {
	if of, ok := s.(sized); ok {
		m.stored.registry.MustRegister(sizeMetric{of, log})
	}
}
