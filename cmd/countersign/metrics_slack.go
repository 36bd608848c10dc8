package main

import (
	"context"
	"strconv"

	"github.com/prometheus/client_golang/prometheus"

	"countersign/bot"
	"countersign/store"
)

// countCall takes in one call of Slack's Web API.
func (m *metrics) countCall(c bot.Call) { m.calls.WithLabelValues(c.Method, string(c.Outcome)).Inc() }

// countRequest takes in one request over HTTP.
func (m *metrics) countRequest(status int) { m.heard.WithLabelValues(strconv.Itoa(status)).Inc() }

// watchSlack shows whether Slack can be worked with, and how much waits for it.
func (m *metrics) watchSlack(s store.Store, ready func(context.Context) error) {
	m.registry.MustRegister(prometheus.NewGaugeFunc(prometheus.GaugeOpts{
		Name: "countersign_slack_up", Help: "1 while Slack answers and a connection from it is up.",
	}, func() float64 {
		if ready(context.Background()) != nil {
			return 0
		}
		return 1
	}))
	for rank, name := range map[store.Rank]string{store.RankFirst: "first", store.RankPlain: "plain", store.RankLast: "last"} {
		m.registry.MustRegister(prometheus.NewGaugeFunc(prometheus.GaugeOpts{
			Name: "countersign_surfaces_waiting", Help: "Messages that Slack does not show yet as they should be. Not counted beyond 10000.",
			ConstLabels: prometheus.Labels{"rank": name},
		}, func() float64 { return timersSet(s, rank.Timer()) }))
	}
}
