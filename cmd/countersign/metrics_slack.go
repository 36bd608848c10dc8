package main

import (
	"context"
	"strconv"

	"github.com/prometheus/client_golang/prometheus"

	"countersign/bot/slackapi"
	"countersign/store"
)

// countCall counts one call of Slack's Web API.
func (m *metrics) countCall(c slackapi.Call) {
	m.calls.WithLabelValues(c.Method, string(c.Outcome)).Inc()
}

// countRequest counts one HTTP request.
func (m *metrics) countRequest(status int) {
	m.httpRequests.WithLabelValues(strconv.Itoa(status)).Inc()
}

// watchSlack adds metrics of Slack's availability, and of the work that waits for it.
func (m *metrics) watchSlack(s store.Store, ready func(context.Context) error) {
	m.registry.MustRegister(prometheus.NewGaugeFunc(prometheus.GaugeOpts{
		Name: "countersign_slack_up", Help: "1 while Slack answers and a connection from it is up.",
	}, func() float64 {
		if ready(context.Background()) != nil {
			return 0
		}
		return 1
	}))
	for rank, name := range map[store.Rank]string{store.RankFirst: "first", store.RankPlain: "plain", store.RankAnswer: "answer", store.RankLast: "last"} {
		m.registry.MustRegister(prometheus.NewGaugeFunc(prometheus.GaugeOpts{
			Name: "countersign_outbox_waiting", Help: "Messages that Slack does not show yet as they should be. Not counted beyond 10000.",
			ConstLabels: prometheus.Labels{"rank": name},
		}, func() float64 { return timersSet(s, rank.Timer()) }))
	}
}
