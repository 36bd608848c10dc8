// Package wire has the formats that the workspace shares with Slack: JSON as Slack writes it, and identifiers, secrets
// and timestamps in Slack's forms.
package wire
