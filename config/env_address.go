package config

import (
	"net"
	"net/url"
	"slices"
	"strconv"
	"strings"
)

// baseURL checks a URL that requests are sent to. Where it can't be read it is not repeated: it may hold a password.
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

// withoutPassword is a URL fit to be printed.
func withoutPassword(text string) string {
	u, err := url.Parse(text)
	if err != nil {
		return redacted
	}
	return u.Redacted()
}

// address checks an address to listen on.
func (r *envReader) address(name, text string) string {
	host, port, err := net.SplitHostPort(text)
	n, numErr := strconv.Atoi(port)
	switch {
	case err != nil && isNumber(text):
		r.wrong(name, quote(text)+" is a port without a host", "write 127.0.0.1:"+text)
	case err != nil:
		r.wrong(name, quote(text)+" is not an address to listen on", "write HOST:PORT, such as 127.0.0.1:9090")
	case numErr != nil || n < 0 || n > 65535:
		r.wrong(name, quote(port)+" is not a port", "write a number from 0 to 65535, such as "+net.JoinHostPort(host, "9090"))
	}
	return text
}

func isNumber(s string) bool {
	_, err := strconv.Atoi(s)
	return err == nil
}

// strangers are the names in the environment that begin as ours do and are not ours.
func strangers(environ []string) []string {
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

// slipOf is the variable of ours that the name was probably meant to be. Only near misses count: Kubernetes sets
// COUNTERSIGN_PORT and more of the kind where a service is called countersign.
func slipOf(name string) string {
	for _, known := range variableNames() {
		if strings.HasPrefix(known, "COUNTERSIGN_") && distance(name, known) <= 2 {
			return known
		}
	}
	return ""
}

// quote repeats what was written, cut where it is long and with everything invisible made visible.
func quote(s string) string {
	if r := []rune(s); len(r) > 60 {
		s = string(r[:60]) + "…"
	}
	return strconv.Quote(s)
}
