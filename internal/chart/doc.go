// Package chart tests the Helm chart in cmd/countersign/deploy/helm; it consists of tests only. The directory is a
// separate module, because Helm and Kubernetes bring hundreds of packages.
package chart
