package config

import (
	"log/slog"
)

// Secret is a token or key. fmt, slog and encoding/json print a Secret as "(set)", or as "" if it is empty.
type Secret string

const redacted = "(set)"

// Reveal returns the secret in plain text, so that it can be sent.
func (s Secret) Reveal() string { return string(s) }

func (s Secret) String() string {
	if s == "" {
		return ""
	}
	return redacted
}

// GoString hides the secret from %#v.
func (s Secret) GoString() string { return s.String() }

// LogValue hides the secret from slog.
func (s Secret) LogValue() slog.Value { return slog.StringValue(s.String()) }

// MarshalText hides the secret from encoding/json.
func (s Secret) MarshalText() ([]byte, error) { return []byte(s.String()), nil }
