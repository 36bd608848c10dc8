// Package redact keeps tokens, keys and passwords out of what is written down: the log, an error that is shown or stored, the last words of a process. Libraries
// quote what they were given, a form, an address, a header, and nobody can know where one of their errors ends up. So every text goes through here last.
//
// A text loses what looks like a secret of a kind that is known, and whatever this process was told is one.
package redact

import (
	"io"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
)

// Removed stands where a secret stood.
const Removed = "(removed)"

// patterns are what secrets look like, and what is left of them.
var patterns = []struct {
	secret *regexp.Regexp
	left   string
}{
	{regexp.MustCompile(`\b(xox[a-z]|xapp|xwfp)[-.][0-9A-Za-z.-]{4,}`), Removed},            // Slack's tokens
	{regexp.MustCompile(`(hooks\.slack\.com/)[0-9A-Za-z_/%-]+`), "${1}" + Removed},          // Slack's addresses for answers: whoever knows one can write there
	{regexp.MustCompile(`\b(sk|pk|rk)-[0-9A-Za-z_-]{8,}`), Removed},                         // keys of models' endpoints
	{regexp.MustCompile(`\bgh[a-z]_[0-9A-Za-z]{16,}`), Removed},                             //
	{regexp.MustCompile(`\beyJ[0-9A-Za-z_-]{8,}\.[0-9A-Za-z_-]+\.[0-9A-Za-z_-]*`), Removed}, // JSON web tokens
	{regexp.MustCompile(`(?i)\b(bearer|basic)([ +]|%20)[0-9a-z._~+/=-]{6,}`), "${1} " + Removed},
	{regexp.MustCompile(`(?i)("?\b[0-9a-z_.-]*(?:token|ticket|secret|passw(?:or)?d|api_?key|authorization)"?(?:[=:]|%3d) ?\[?"?)[^\s"'&,;\])}(]{4,}`), "${1}" + Removed},
	{regexp.MustCompile(`(://)[^/\s"'@]+@`), "${1}" + Removed + "@"}, // a name and a password in an address
}

// known are the secrets that this process was told of, in every way in which they may be written; the longest first.
var known atomic.Pointer[[]string]

// shortest is the length below which a value is no secret: it would take words out of texts.
const shortest = 6

// Secrets are never written down from now on.
func Secrets(values ...string) {
	for {
		before := known.Load()
		var all []string
		if before != nil {
			all = slices.Clone(*before)
		}
		for _, v := range values {
			if len(v) < shortest {
				continue
			}
			quoted := strconv.Quote(v)
			all = append(all, v, url.QueryEscape(v), url.PathEscape(v), quoted[1:len(quoted)-1])
		}
		slices.SortFunc(all, func(a, b string) int {
			if len(a) != len(b) {
				return len(b) - len(a)
			}
			return strings.Compare(a, b)
		})
		all = slices.Compact(all)
		if known.CompareAndSwap(before, &all) {
			return
		}
	}
}

// secretName is how variables are called that hold secrets.
var secretName = regexp.MustCompile(`(?i)(TOKEN|SECRET|PASSW|PASSPHRASE|CREDENTIAL|(API|ACCESS|PRIVATE|SIGNING)_?KEY|_KEY$|_PAT$)`)

// Environ takes the secrets of an environment, as os.Environ gives it: the values of the variables that are called like one.
func Environ(environ []string) {
	for _, line := range environ {
		if name, value, ok := strings.Cut(line, "="); ok && secretName.MatchString(name) && !strings.HasPrefix(value, "/") { // a path leads to one
			Secrets(value)
		}
	}
}

// Text is a text without its secrets.
func Text(s string) string {
	if all := known.Load(); all != nil {
		for _, secret := range *all {
			s = strings.ReplaceAll(s, secret, Removed)
		}
	}
	for _, p := range patterns {
		s = p.secret.ReplaceAllString(s, p.left)
	}
	return s
}

// Error is what an error says, without secrets; empty for none.
func Error(err error) string {
	if err == nil {
		return ""
	}
	return Text(err.Error())
}

// Writer writes on to w what it is given, without secrets. Each write is looked at by itself: loggers write a line at a time.
func Writer(w io.Writer) io.Writer { return writer{w} }

type writer struct{ w io.Writer }

func (w writer) Write(p []byte) (int, error) {
	if _, err := io.WriteString(w.w, Text(string(p))); err != nil {
		return 0, err
	}
	return len(p), nil
}
