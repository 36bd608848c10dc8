package main

import (
	"github.com/prometheus/client_golang/prometheus"

	"countersign/agent"
)

// blockedTools counts the tools that differ from their pins.
type blockedTools struct{ tools *agent.Registry }

var toolsBlocked = prometheus.NewDesc("countersign_tools_blocked", "Tools of a source that are not what the operator pinned.", []string{"source"}, nil)

// Describe implements prometheus.Collector.
func (b blockedTools) Describe(to chan<- *prometheus.Desc) { to <- toolsBlocked }

// Collect returns the current number for each source, including zeros.
func (b blockedTools) Collect(to chan<- prometheus.Metric) {
	n := map[string]int{}
	for _, source := range b.tools.Sources() {
		n[source] = 0
	}
	all, _ := b.tools.Status()
	for _, t := range all {
		if t.Tool.Blocked != "" {
			n[t.Tool.Source]++
		}
	}
	for source, blocked := range n {
		to <- prometheus.MustNewConstMetric(toolsBlocked, prometheus.GaugeValue, float64(blocked), source)
	}
}
