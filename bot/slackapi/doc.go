// Package slackapi calls Slack's Web API.
//
// Client is slack-go's client with a transport that every call passes:
//
//   - The size guard refuses messages and views that Slack would refuse because of their size.
//   - The rate limiter applies Slack's limits and lets urgent calls go first. A caller states the purpose of its calls
//     with WithCallPriority.
//   - The circuit breaker stops calls while Slack does not answer, and tests until it does.
//
// A call that may not be made now fails at once with an error that has the time of its next try (RetryDelay); nothing
// is queued here. No call is repeated: the caller decides, after IsNotSent has told it whether the call had an effect.
//
// The package does not know requests, policies or the store. It must not log or return a token: errors quote Slack's
// answers, and pass through internal/redact before they are logged or stored.
package slackapi
