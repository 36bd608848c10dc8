// Package slackapi calls Slack's Web API.
//
// Client is slack-go's client. Every call goes through a transport with three parts:
//
//   - The size guard refuses messages and views that Slack would refuse because of their size.
//   - The rate limiter applies Slack's limits and lets urgent calls go first. A caller states the purpose of its calls
//     with WithCallPriority.
//   - The circuit breaker stops calls while Slack does not answer, and tests whether it answers again.
//
// A call that can't be made now or within a second fails immediately, with an error that has the time of the next try
// (RetryDelay). The package queues no calls and repeats none: the caller decides about that. IsNotSent tells the caller
// whether a failed call certainly had no effect.
//
// The package does not know requests, policies or the store. It must not log or return a token: errors quote Slack's
// answers, and pass through internal/redact before they are logged or stored.
package slackapi
