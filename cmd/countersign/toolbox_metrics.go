package main

import (
	"context"
	"errors"

	"github.com/prometheus/client_golang/prometheus"

	"countersign/agent"
)

// The outcomes of a call of a server's tool.
const (
	servedOK      = "answered"
	servedFailed  = "failed"  // nothing was done
	servedUnknown = "unknown" // unknown whether anything was done
)

// serverCalls counts the calls of servers' tools.
type serverCalls struct{ vec *prometheus.CounterVec }

func newServerCalls() *serverCalls {
	return &serverCalls{prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "countersign_server_calls_total", Help: "Calls of tools of MCP servers: answered, failed, or unknown.",
	}, []string{"server", "outcome"})}
}

// count counts the calls of a tool.
func (c *serverCalls) count(server string, t *agent.Tool) {
	run := t.Run
	t.Run = func(ctx context.Context, in agent.Invocation) (string, error) {
		result, err := run(ctx, in)
		outcome := servedOK
		switch {
		case errors.Is(err, agent.ErrOutcomeUnknown):
			outcome = servedUnknown
		case err != nil:
			outcome = servedFailed
		}
		c.vec.WithLabelValues(server, outcome).Inc()
		return result, err
	}
}

var (
	serverUp       = prometheus.NewDesc("countersign_server_up", "1 while an MCP server of the policy is connected.", []string{"server"}, nil)
	serverTools    = prometheus.NewDesc("countersign_server_tools", "Tools that an MCP server offered when it was listed last.", []string{"server"}, nil)
	serverRestarts = prometheus.NewDesc("countersign_server_restarts_total", "Connections to an MCP server after the first since the bot began or the server's entry in the policy changed.", []string{"server"}, nil)
)

// Describe implements prometheus.Collector.
func (b *toolbox) Describe(to chan<- *prometheus.Desc) {
	to <- serverUp
	to <- serverTools
	to <- serverRestarts
	b.calls.vec.Describe(to)
}

// Collect returns the current state of the servers.
func (b *toolbox) Collect(to chan<- prometheus.Metric) {
	for _, s := range b.status() {
		up := 0.0
		if s.Connected {
			up = 1
		}
		to <- prometheus.MustNewConstMetric(serverUp, prometheus.GaugeValue, up, s.Server)
		to <- prometheus.MustNewConstMetric(serverTools, prometheus.GaugeValue, float64(s.Tools), s.Server)
		to <- prometheus.MustNewConstMetric(serverRestarts, prometheus.CounterValue, float64(s.Restarts), s.Server)
	}
	b.calls.vec.Collect(to)
}

// watchServers adds metrics of the MCP servers, and of the tools that differ from their pins.
func (m *metrics) watchServers(b *toolbox) { m.registry.MustRegister(b, blockedTools{b.Registry}) }
