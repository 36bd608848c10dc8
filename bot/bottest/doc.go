// Package bottest has the fixtures that the tests of bot and of the packages below it share: a policy, a pending
// request, the request's view, and the comparison with golden files. Only tests import it.
package bottest
