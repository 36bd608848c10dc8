// Package bottest has fixtures for the tests of package bot and of the packages below it: a policy, a pending request
// and the request's view. The package also compares data for Slack with golden files. Only tests import this package.
package bottest
