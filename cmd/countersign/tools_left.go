package main

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"slices"
	"strings"
	"sync"

	"countersign/agent"
	"countersign/agent/httptool"
	"countersign/agent/pins"
	"countersign/internal/visible"
)

// leftOut is a definition of a source that is not usable as a tool, with the reason.
type leftOut struct {
	source string // in the form of Tool.Source
	reason string
}

// listener collects log entries about tools that servers define but that are not offered.
type listener struct {
	heard *heard
	attrs []slog.Attr
}

type heard struct {
	mu  sync.Mutex
	all []leftOut
}

func (l listener) Enabled(_ context.Context, level slog.Level) bool { return level >= slog.LevelWarn }
func (l listener) WithGroup(string) slog.Handler                    { return l }
func (l listener) WithAttrs(attrs []slog.Attr) slog.Handler {
	l.attrs = slices.Concat(l.attrs, attrs)
	return l
}

func (l listener) Handle(_ context.Context, r slog.Record) error {
	said := map[string]string{}
	for _, a := range l.attrs {
		said[a.Key] = a.Value.String()
	}
	r.Attrs(func(a slog.Attr) bool {
		said[a.Key] = a.Value.String()
		return true
	})
	one := leftOut{said["server"], visible.Line(said["problem"])}
	l.heard.mu.Lock()
	defer l.heard.mu.Unlock()
	if said["problem"] != "" && !slices.Contains(l.heard.all, one) {
		l.heard.all = append(l.heard.all, one)
	}
	return nil
}

// apiLeftOut returns the omitted operations of the policy's OpenAPI files, with the position in the policy file.
func (s *toolReport) apiLeftOut() []leftOut {
	var out []leftOut
	for _, api := range s.file.OpenAPI {
		source := apiSource(api.Name)
		_, faults := httptool.OpenAPI(api, nil)
		for _, p := range placed(s.file, source, faults) {
			out = append(out, leftOut{source, p.Error()})
		}
	}
	return out
}

// refusal returns the reason why a tool's current definition can't be used, or "" if it can or is unknown.
func (s *toolReport) refusal(t agent.Status) string {
	if t.Fault != nil {
		return visible.Line(t.Fault.Error())
	}
	if t.State != pins.Gone {
		return ""
	}
	name, bare := t.Tool.Name, t.Tool.Name
	if _, after, ok := strings.Cut(name, "."); ok {
		bare = after
	}
	for _, l := range s.left {
		if l.source != t.Tool.Source {
			continue
		}
		for _, named := range []string{" " + name + ",", fmt.Sprintf("%q", name), fmt.Sprintf("%q", bare), "(" + bare + ")"} {
			if strings.Contains(l.reason, named) {
				return l.reason
			}
		}
	}
	return ""
}

// printLeft prints which definitions of a source are not offered or are changed; without a source, those of all
// sources.
func (s *toolReport) printLeft(out io.Writer, source string) {
	said := false
	for _, l := range s.left {
		if source != "" && l.source != source && l.source != apiSource(source) {
			continue
		}
		if !said {
			fmt.Fprintln(out, "\nNot offered, or not as it is written:")
			said = true
		}
		fmt.Fprintf(out, "  %s: %s\n", strings.TrimPrefix(l.source, apiSource("")), l.reason)
	}
}
