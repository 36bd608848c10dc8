// Package alerts tests the alerts and the dashboard in cmd/countersign/deploy with Prometheus' own engine. The package
// is a separate module, because only this package needs Prometheus.
package alerts
