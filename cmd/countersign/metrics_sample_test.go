package main

import (
	"bytes"
	"os"
	"slices"
	"strings"
	"testing"
)

// sampleOfMetrics is the path of a file with each metric and its labels. The tests of alerts and dashboards
// (internal/alerts) read this file.
const sampleOfMetrics = "../../internal/alerts/testdata/metrics.txt"

// TestSampleOfMetrics compares the sample with the metrics of a bot. With -update, the test writes the sample.
func TestSampleOfMetrics(t *testing.T) {
	var lines []string
	for _, l := range scrape(t, allMetrics(t)) {
		if name, _, ok := strings.Cut(l, " "); ok && strings.HasPrefix(name, "countersign_") {
			if i := strings.LastIndex(l, "} "); i >= 0 {
				name = l[:i+1]
			}
			lines = append(lines, name)
		}
	}
	slices.Sort(lines)
	got := []byte(strings.Join(lines, "\n") + "\n")
	if *update {
		write(t, sampleOfMetrics, got)
	}
	want, err := os.ReadFile(sampleOfMetrics)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got, want) {
		t.Errorf("%s is out of date; run this test with -update. Metrics now:\n%s", sampleOfMetrics, got)
	}
}
