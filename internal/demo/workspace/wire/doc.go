// Package wire has what every part of the workspace needs to speak with Slack's clients: JSON as Slack writes it, and
// identifiers, secrets and timestamps in Slack's forms.
package wire
