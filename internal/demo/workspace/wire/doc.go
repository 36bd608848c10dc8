// Package wire has the formats that every part of the workspace uses towards Slack's clients: JSON as Slack writes it,
// and identifiers, secrets and timestamps in Slack's forms.
package wire
