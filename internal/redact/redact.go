// Package redact removes tokens, keys and passwords from texts before they are written: log lines, stored or displayed
// errors, and the last output of a process. Errors of libraries quote input, such as a form, an address or a header.
// Therefore all these texts pass through this package last.
//
// The package removes secrets that this process registered, and text that has the format of a known kind of secret.
package redact

import (
	"io"
	"net/url"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
)

// Removed replaces a secret.
const Removed = "(removed)"

// patterns match known kinds of secrets, with their replacement.
var patterns = []struct {
	secret *regexp.Regexp
	left   string
}{
	{regexp.MustCompile(`\b(xox[a-z]|xapp|xwfp)[-.][0-9A-Za-z.-]{4,}`), Removed},            // Slack's tokens
	{regexp.MustCompile(`(hooks\.slack\.com/)[0-9A-Za-z_/%-]+`), "${1}" + Removed},          // Slack's response URLs, which anybody can use to post a message
	{regexp.MustCompile(`\b(sk|pk|rk)-[0-9A-Za-z_-]{8,}`), Removed},                         // keys of model endpoints
	{regexp.MustCompile(`\bgh[a-z]_[0-9A-Za-z]{16,}`), Removed},                             // GitHub's tokens
	{regexp.MustCompile(`\beyJ[0-9A-Za-z_-]{8,}\.[0-9A-Za-z_-]+\.[0-9A-Za-z_-]*`), Removed}, // JSON web tokens
	{regexp.MustCompile(`(?i)\b(authorization"?(?:[=:]|%3d) ?\[?"?(?:bearer|basic))(?:[ +]|%20)[^\s"'&,;\])}(]{4,}`), "${1} " + Removed},
	{regexp.MustCompile(`(?i)\b(bearer)([ +]|%20)[0-9a-z._~+/=-]{6,}`), "${1} " + Removed},
	{regexp.MustCompile(`(?i)("?\b[0-9a-z_.-]*(?:token|ticket|secret|passw(?:or)?d|api_?key|authorization)"?(?:[=:]|%3d) ?\[?"?)[^\s"'&,;\])}(]{4,}`), "${1}" + Removed},
}

// user matches a name and a password in an address. The match is not a secret if it equals placeholder, because
// Countersign's messages show the form of an address with placeholder.
var user = regexp.MustCompile(`://[^/\s"'@]+@`)

const placeholder = "://USER@"

func withoutUser(s string) string {
	return user.ReplaceAllStringFunc(s, func(found string) string {
		if found == placeholder {
			return found
		}
		return "://" + Removed + "@"
	})
}

// basic matches a name and a password in base64. A plain word after "Basic" is not a secret. For example, "Basic
// Information" is a page of Slack's app settings.
var (
	basic     = regexp.MustCompile(`(?i)\bbasic(?:[ +]|%20)[0-9a-z._~+/=-]{6,}`)
	basicWord = regexp.MustCompile(`^\w+(?:[ +]|%20)[A-Za-z][a-z]+[.-]*$`)
)

func withoutBasic(s string) string {
	return basic.ReplaceAllStringFunc(s, func(found string) string {
		if basicWord.MatchString(found) {
			return found
		}
		return found[:len("basic")] + " " + Removed
	})
}

// known holds the registered secrets in every form in which they may be written, longest first.
var known atomic.Pointer[[]string]

// shortest is the minimum length of a registered secret, because removing shorter values would remove ordinary words.
const shortest = 6

// Secrets registers secrets. All later calls of this package remove the registered secrets.
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

// secretName matches the names of variables that hold secrets.
var secretName = regexp.MustCompile(`(?i)(TOKEN|SECRET|PASSW|PASSPHRASE|CREDENTIAL|(API|ACCESS|PRIVATE|SIGNING)_?KEY|_KEY$|_PAT$)`)

// pathNames are the variables whose names match secretName, but whose values are paths. A path may be relative.
var pathNames = []string{"COUNTERSIGN_AUDIT_KEY", "COUNTERSIGN_GATEWAY_KEY"}

// Environ registers the secrets of an environment in the form of os.Environ. A variable has a secret if its name
// suggests a secret. The secret is the variable's value or, if the name ends in _FILE, the content of the named file.
func Environ(environ []string) {
	for _, line := range environ {
		name, value, ok := strings.Cut(line, "=")
		base, isFile := strings.CutSuffix(name, "_FILE")
		switch {
		case !ok || !secretName.MatchString(base) || slices.Contains(pathNames, name):
		case isFile:
			file(value)
		case !strings.HasPrefix(value, "/"): // a path only names the file with the secret
			Secrets(value)
		}
	}
}

// maxFile is the maximum size in bytes of a file with a secret.
const maxFile = 64 << 10

// file registers the content of a file. The function ignores a file that can't be read, because the code that uses the
// file reports the error.
func file(path string) {
	if info, err := os.Stat(path); err != nil || !info.Mode().IsRegular() || info.Size() > maxFile {
		return
	}
	if content, err := os.ReadFile(path); err == nil {
		Secrets(strings.TrimSpace(string(content)))
	}
}

// Text returns a text without secrets.
func Text(s string) string {
	if all := known.Load(); all != nil {
		for _, secret := range *all {
			s = strings.ReplaceAll(s, secret, Removed)
		}
	}
	s = withoutBasic(s)
	for _, p := range patterns {
		s = p.secret.ReplaceAllString(s, p.left)
	}
	return withoutUser(s)
}

// Error returns the text of an error without secrets. If err is nil, the text is empty.
func Error(err error) string {
	if err == nil {
		return ""
	}
	return Text(err.Error())
}

// Writer returns a writer that removes secrets and writes the rest to w. Writer checks each write separately, because
// loggers write one line at a time.
func Writer(w io.Writer) io.Writer { return writer{w} }

type writer struct{ w io.Writer }

func (w writer) Write(p []byte) (int, error) {
	if _, err := io.WriteString(w.w, Text(string(p))); err != nil {
		return 0, err
	}
	return len(p), nil
}
