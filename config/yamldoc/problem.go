package yamldoc

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode"
)

// Severity is the severity of a problem.
type Severity int

// The severities. The zero value, Error, is more severe than Warning.
const (
	Error   Severity = iota
	Warning          // the policy works as written, but the author probably meant something else
)

// String returns the severity as a word.
func (s Severity) String() string {
	if s == Warning {
		return "warning"
	}
	return "error"
}

// Problem is one mistake in the operator's configuration.
type Problem struct {
	Variable string // the environment variable with the mistake; empty: the mistake is in a file
	File     string // the file with the mistake
	Line     int    // from 1; zero: the file as a whole
	Column   int    // in characters, from 1
	Message  string // what is wrong
	Hint     string // what to write instead
	Severity Severity
	Source   string // text of the line with the mistake
}

// Error returns the problem on one line, in the form "countersign.yaml:12:9: what is wrong; what to write".
func (p Problem) Error() string {
	var b strings.Builder
	switch {
	case p.Variable != "":
		b.WriteString(p.Variable + ": ")
	case p.Line > 0:
		fmt.Fprintf(&b, "%s:%d:%d: ", p.File, p.Line, p.Column)
	case p.File != "":
		b.WriteString(p.File + ": ")
	}
	if p.Severity == Warning {
		b.WriteString("warning: ")
	}
	b.WriteString(p.Message)
	if p.Hint != "" {
		b.WriteString("; " + p.Hint)
	}
	return OnOneLine(b.String())
}

// OnOneLine escapes control characters, which a text of the file may contain.
func OnOneLine(s string) string {
	var b strings.Builder
	for _, r := range s {
		if unicode.IsControl(r) {
			b.WriteString(strings.Trim(strconv.QuoteRune(r), "'"))
			continue
		}
		b.WriteRune(r)
	}
	return b.String()
}

// Problems lists the problems of a file, in the order of the file. If Problems is returned as an error, at least one
// problem has the severity Error.
type Problems []Problem

// Error returns one line for each problem.
func (ps Problems) Error() string {
	lines := make([]string, len(ps))
	for i, p := range ps {
		lines[i] = p.Error()
	}
	return strings.Join(lines, "\n")
}

// Errors returns the problems of severity Error.
func (ps Problems) Errors() Problems { return ps.of(Error) }

// Warnings returns the problems of severity Warning.
func (ps Problems) Warnings() Problems { return ps.of(Warning) }

func (ps Problems) of(s Severity) Problems {
	var out Problems
	for _, p := range ps {
		if p.Severity == s {
			out = append(out, p)
		}
	}
	return out
}

// Err returns the problems as an error if one of them is of severity Error. If there is no such problem, Err returns
// nil.
func (ps Problems) Err() error {
	if len(ps.Errors()) == 0 {
		return nil
	}
	return ps
}

// InOrder sorts the problems by position in the file. InOrder drops duplicates, which occur if several keys share an
// anchor.
func (ps Problems) InOrder() Problems {
	slices.SortStableFunc(ps, func(a, b Problem) int {
		return cmp.Or(cmp.Compare(a.Line, b.Line), cmp.Compare(a.Column, b.Column))
	})
	return slices.Compact(ps)
}
