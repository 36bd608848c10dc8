// Package chart tests the Helm chart in cmd/countersign/deploy/helm, the compose file, and the commands of
// docs/deploy.md that use them. The package consists of tests only. The package is a separate module, because Helm and
// Kubernetes need hundreds of packages.
package chart
