package main

import (
	"github.com/prometheus/client_golang/prometheus"

	"countersign/agent"
)

// blockedTools counts the tools that are not what was pinned.
type blockedTools struct{ tools *agent.Registry }

var toolsBlocked = prometheus.NewDesc("countersign_tools_blocked", "Tools of a source that are not what the operator pinned.", []string{"source"}, nil)

// Describe is a part of prometheus.Collector.
func (b blockedTools) Describe(to chan<- *prometheus.Desc) { to <- toolsBlocked }

// Collect is the other part: how many there are now, for each source, also where there are none.
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
