// Package slackapi calls Slack's Web API.
//
// Client embeds slack-go's client. Every call goes through a transport. These are its main parts:
//
//   - The size guard refuses messages and views that Slack would refuse because of their size.
//   - The rate limiter applies Slack's limits and lets urgent calls go first. A caller states the purpose of its calls
//     with WithCallPriority.
//   - The circuit breaker stops calls while Slack does not answer, and tests whether Slack answers again.
//
// If a call can't be made within a second, it fails immediately. The error has the time of the next try (RetryDelay).
// The package does not queue or repeat calls. The caller decides when to repeat a call. IsNotSent tells the caller
// whether a failed call certainly had no effect.
//
// The package is independent of requests, policies and the store. The package must not log or return a token. Errors
// quote Slack's answers, so errors pass through internal/redact before they are logged or stored.
package slackapi
