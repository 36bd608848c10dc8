package config

import (
	"net"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"countersign/config/yamldoc"
)

// baseURL checks a URL for requests. The error does not repeat an invalid URL, because the URL may contain a password.
func (r *envReader) baseURL(name, text, hint string) string {
	if text == "" {
		return ""
	}
	u, err := url.Parse(strings.TrimSpace(text))
	switch {
	case err != nil:
		r.wrong(name, "is not a URL", hint)
	case u.Scheme != "https" && u.Scheme != "http":
		r.wrong(name, "does not begin with https:// or http://", hint)
	case u.Host == "":
		r.wrong(name, "names no host", hint)
	case u.RawQuery != "" || u.Fragment != "":
		r.wrong(name, "has something after a ? or #, which a base URL can't have", hint)
	default:
		return u.String()
	}
	return ""
}

// withoutPassword returns a URL in a form that is safe to print.
func withoutPassword(text string) string {
	u, err := url.Parse(text)
	if err != nil {
		return redacted
	}
	return u.Redacted()
}

// withoutSecrets returns a URL without its user and its parameters, because both may contain a password.
func withoutSecrets(text string) string {
	u, err := url.Parse(text)
	if err != nil {
		return redacted
	}
	u.User, u.RawQuery, u.Fragment = nil, "", ""
	return u.String()
}

// mayHoldSecret reports whether an address has a part that may be a password: a user or parameters.
func mayHoldSecret(text string) bool { return strings.ContainsAny(text, "@?") }

// quotedAddress quotes an invalid address for a problem. If the address may contain a secret, quotedAddress does not
// repeat it.
func quotedAddress(text string) string {
	if mayHoldSecret(text) {
		return "the value"
	}
	return yamldoc.Quote(text)
}

// address checks a listen address.
func (r *envReader) address(name, text string) string {
	host, port, err := net.SplitHostPort(text)
	switch {
	case err != nil && isPort(text):
		r.wrong(name, yamldoc.Quote(text)+" is a port without a host", "write 127.0.0.1:"+text)
	case err != nil && isNumber(text):
		r.wrong(name, yamldoc.Quote(text)+" is not a port", "write HOST:PORT with a port from 0 to 65535, such as 127.0.0.1:9090")
	case err != nil:
		r.wrong(name, yamldoc.Quote(text)+" is not an address to listen on", "write HOST:PORT, such as 127.0.0.1:9090")
	case !isPort(port):
		r.wrong(name, yamldoc.Quote(port)+" is not a port", "write a number from 0 to 65535, such as "+net.JoinHostPort(host, "9090"))
	}
	return text
}

func isPort(s string) bool {
	n, err := strconv.Atoi(s)
	return err == nil && n >= 0 && n <= 65535
}

func isNumber(s string) bool {
	_, err := strconv.Atoi(s)
	return err == nil
}

// unknownVariables lists environment variables that begin with COUNTERSIGN_, SLACK_ or OPENAI_ but are not variables of
// Countersign.
func unknownVariables(environ []string) []string {
	known := variableNames()
	var out []string
	for _, pair := range environ {
		name, _, _ := strings.Cut(pair, "=")
		ours := strings.HasPrefix(name, "COUNTERSIGN_") || strings.HasPrefix(name, "SLACK_") || strings.HasPrefix(name, "OPENAI_")
		if ours && !slices.Contains(known, name) {
			out = append(out, name)
		}
	}
	slices.Sort(out)
	return out
}

// slipOf returns the variable with the prefix COUNTERSIGN_ that the author of an unknown name probably meant, or "".
// slipOf accepts only very similar names, because Kubernetes sets COUNTERSIGN_PORT and similar variables for a service
// called countersign.
func slipOf(name string) string {
	for _, known := range variableNames() {
		if strings.HasPrefix(known, "COUNTERSIGN_") && yamldoc.EditDistance(name, known) <= 2 {
			return known
		}
	}
	return ""
}
