package config

import (
	"log/slog"
	"slices"
	"strings"
)

// Secret is a token or key. fmt, slog and encoding/json print a Secret as "(set)", or as "" if it is empty.
type Secret string

// secretNames lists words that appear in the names of secret headers and parameters.
var secretNames = []string{"authorization", "cookie", "token", "secret", "password", "api-key", "apikey", "api_key"}

// WrittenSecret reports whether the value of a header or a parameter is probably a secret that the policy file contains
// in plain text.
func WrittenSecret(name string, value Template) bool {
	return secretName(name) && len(value.Variables())+len(value.Arguments()) == 0
}

func secretName(name string) bool {
	return slices.ContainsFunc(secretNames, func(s string) bool { return strings.Contains(strings.ToLower(name), s) })
}

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
