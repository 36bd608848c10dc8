// Package bottest has fixtures for the tests of package bot and of the packages below it: a policy, a pending request,
// the request's view, and the comparison with golden files. Only tests import this package.
package bottest
