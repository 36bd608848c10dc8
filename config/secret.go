package config

import (
	"log/slog"
)

// Secret is a token or key. It prints as "(set)" in every way that fmt, slog and encoding/json know.
type Secret string

const redacted = "(set)"

// Reveal is the secret itself, for whoever has to send it.
func (s Secret) Reveal() string { return string(s) }

func (s Secret) String() string {
	if s == "" {
		return ""
	}
	return redacted
}

// GoString keeps %#v from printing the secret.
func (s Secret) GoString() string { return s.String() }

// LogValue keeps slog from printing the secret.
func (s Secret) LogValue() slog.Value { return slog.StringValue(s.String()) }

// MarshalText keeps encoding/json from printing the secret.
func (s Secret) MarshalText() ([]byte, error) { return []byte(s.String()), nil }
