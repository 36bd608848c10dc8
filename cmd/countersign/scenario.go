package main

import (
	"bufio"
	"fmt"
	"regexp"
	"strings"
)

// A scenario reads like a Slack thread. Lines at the margin are what people do; the player does it for them through the
// workspace's page API. Indented lines are what must be seen afterwards, whole and in order; "…" stands for any text. A line that
// starts with # is a comment.
//
//	Sam in #support: @Countersign Refund ORD-123, it arrived broken
//	  issue_refund waits for Team Lead: Refund of $49.99 for order ORD-123
//	Teo approves issue_refund
//	  issue_refund was approved by Teo (Team Lead) and done
//	  Countersign: …refund…
type scenario struct {
	name  string
	scene []scene
}

// scene is one thing that a person does, and what must be seen afterwards.
type scene struct {
	line   int
	text   string // as written
	who    string
	does   string // says, approves, rejects, modifies, withdraws, goes on
	where  string // for says: a channel, or a thread's continuation if empty
	tool   string
	detail string
	expect []string
}

var (
	saysIn  = regexp.MustCompile(`^(\w+) in (#[\w-]+|a DM): (.+)$`)
	says    = regexp.MustCompile(`^(\w+): (.+)$`)
	goesOn  = regexp.MustCompile(`^(\w+) (goes on)$`)
	decides = regexp.MustCompile(`^(\w+) (approves|rejects|modifies|withdraws) ([\w.-]+)(?:: (.+))?$`)
)

// parseScenario reads a scenario file.
func parseScenario(name string, text string) (scenario, error) {
	s := scenario{name: name}
	lines := bufio.NewScanner(strings.NewReader(text))
	for n := 1; lines.Scan(); n++ {
		line := strings.TrimRight(lines.Text(), " \t\r")
		switch {
		case line == "" || strings.HasPrefix(line, "#"):
			continue
		case strings.HasPrefix(line, " ") || strings.HasPrefix(line, "\t"):
			if len(s.scene) == 0 {
				return s, misused("%s:%d: an expectation comes before anybody did anything", name, n)
			}
			last := &s.scene[len(s.scene)-1]
			last.expect = append(last.expect, strings.TrimSpace(line))
			continue
		}
		sc, err := parseScene(line)
		if err != nil {
			return s, misused("%s:%d: %w", name, n, err)
		}
		sc.line = n
		s.scene = append(s.scene, sc)
	}
	if len(s.scene) == 0 {
		return s, misused("%s: nobody does anything in it; write a line such as \"Sam in #support: @Countersign where is ORD-123?\"", name)
	}
	if s.scene[0].does != "says" || s.scene[0].where == "" {
		return s, misused("%s:%d: the first line has to say where it is said, as in \"Sam in #support: …\"", name, s.scene[0].line)
	}
	return s, lines.Err()
}

func parseScene(line string) (scene, error) {
	if m := saysIn.FindStringSubmatch(line); m != nil {
		return scene{text: line, who: m[1], does: "says", where: m[2], detail: m[3]}, nil
	}
	if m := decides.FindStringSubmatch(line); m != nil {
		sc := scene{text: line, who: m[1], does: m[2], tool: m[3], detail: m[4]}
		switch {
		case sc.does == "rejects" && sc.detail == "":
			return sc, fmt.Errorf("a rejection needs a reason: \"%s: too much\"", line)
		case sc.does == "modifies" && !strings.Contains(sc.detail, "="):
			return sc, fmt.Errorf("say what is changed: \"%s: amount=20\"", line)
		}
		return sc, nil
	}
	if m := goesOn.FindStringSubmatch(line); m != nil {
		return scene{text: line, who: m[1], does: m[2]}, nil
	}
	if m := says.FindStringSubmatch(line); m != nil {
		return scene{text: line, who: m[1], does: "says", detail: m[2]}, nil
	}
	return scene{}, fmt.Errorf("%q is none of: NAME in #channel: text · NAME: text · NAME approves TOOL · NAME rejects TOOL: reason · NAME modifies TOOL: argument=value · NAME withdraws TOOL · NAME goes on", line)
}

// matches reports whether a line that was seen is what was expected: "…" stands for any text.
func matches(expected, seen string) bool {
	parts := strings.Split(expected, "…")
	for i := range parts {
		parts[i] = regexp.QuoteMeta(parts[i])
	}
	ok, err := regexp.MatchString("(?s)^"+strings.Join(parts, ".*")+"$", seen)
	return err == nil && ok
}
