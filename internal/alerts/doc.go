// Package alerts tests the alerts and the dashboard in cmd/countersign/deploy with Prometheus' own engine. It is a module
// of its own, because nothing else needs Prometheus.
package alerts
