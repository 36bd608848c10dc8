package main

import (
	"github.com/prometheus/client_golang/prometheus"

	"countersign/agent/catalog"
)

// toolMetrics collects the metrics of the MCP servers, and of the tools that differ from their pins.
type toolMetrics struct{ *catalog.Catalog }

var (
	serverUp       = prometheus.NewDesc("countersign_server_up", "1 while an MCP server of the policy is connected.", []string{"server"}, nil)
	serverTools    = prometheus.NewDesc("countersign_server_tools", "Tools that an MCP server offered when it was listed last.", []string{"server"}, nil)
	serverRestarts = prometheus.NewDesc("countersign_server_restarts_total", "Connections to an MCP server after the first since the bot began or the server's entry in the policy changed.", []string{"server"}, nil)
	serverCalls    = prometheus.NewDesc("countersign_server_calls_total", "Calls of tools of MCP servers: answered, failed, or unknown.", []string{"server", "outcome"}, nil)
	toolsBlocked   = prometheus.NewDesc("countersign_tools_blocked", "Tools of a source that are not what the operator pinned.", []string{"source"}, nil)
)

// Describe implements prometheus.Collector.
func (c toolMetrics) Describe(to chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{serverUp, serverTools, serverRestarts, serverCalls, toolsBlocked} {
		to <- d
	}
}

// Collect returns the current state of the servers and, for each source, the number of blocked tools, including zeros.
func (c toolMetrics) Collect(to chan<- prometheus.Metric) {
	for _, s := range c.Servers() {
		up := 0.0
		if s.Connected {
			up = 1
		}
		to <- prometheus.MustNewConstMetric(serverUp, prometheus.GaugeValue, up, s.Server)
		to <- prometheus.MustNewConstMetric(serverTools, prometheus.GaugeValue, float64(s.Tools), s.Server)
		to <- prometheus.MustNewConstMetric(serverRestarts, prometheus.CounterValue, float64(s.Restarts), s.Server)
	}
	for calls, n := range c.Calls() {
		to <- prometheus.MustNewConstMetric(serverCalls, prometheus.CounterValue, float64(n), calls.Server, string(calls.Outcome))
	}
	blocked := map[string]int{}
	for _, source := range c.Sources() {
		blocked[source] = 0
	}
	all, _ := c.Status()
	for _, t := range all {
		if t.Tool.Blocked != "" {
			blocked[t.Tool.Source]++
		}
	}
	for source, n := range blocked {
		to <- prometheus.MustNewConstMetric(toolsBlocked, prometheus.GaugeValue, float64(n), source)
	}
}

// watchTools adds metrics of the MCP servers and of the tools.
func (m *metrics) watchTools(c *catalog.Catalog) { m.registry.MustRegister(toolMetrics{c}) }
