package scenario

import (
	"bufio"
	"context"
	"fmt"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"

	"countersign/cmd/countersign/cli"
)

// A scenario reads like a Slack thread. Lines without indentation describe actions of people and events. The player
// acts for the people through the API of the workspace's page. Below such a line, indented lines show all messages that
// people must then see, in order. In such a message, "…" stands for any text. A line that starts with # is a comment.
//
//	Policy: refunds.yaml
//	It is Friday 2026-12-18 17:30 Europe/Berlin
//
//	Sam in #support: @Countersign Refund ORD-123, it arrived broken
//	  issue_refund waits for team-lead: Refund of $49.99 for order ORD-123
//	10 minutes pass
//	  Ingrid is told: Refund of $49.99 for order ORD-123
//	Teo approves issue_refund
//	  issue_refund was approved by Teo (team-lead) and done
//	  Countersign: …refund…
//
// At its beginning, a scenario may name a policy file and a start time. The path of the policy file is relative to the
// scenario.
//
// What people do:
//
//	Sam in #support: TEXT           says something, and begins a thread; "in a DM" says it to the bot alone
//	Sam: TEXT                       writes in the same thread
//	Sam: /countersign TEXT          a slash command; "Sam in #channel: /…" and "Sam in a DM: /…" name the conversation
//	Teo approves issue_refund: 700  presses a button, and fills in the form that opens: verbs.go lists the buttons
//	Sam tries to approve TOOL       the same, but a missing button is a line of the transcript instead of an error
//	Sam pauses notifications for 2 hours
//	Teo pauses: REASON              /countersign pause REASON, and the button that it shows; "Teo resumes" ends the pause
//
// The actions of another agent, which is a client of the gateway and runs its tools itself:
//
//	ci asks over the gateway for deploy: {"service":"shop"}
//	ci goes on with deploy: deployed   claims the approval, runs the tool, and reports this result
//
// What happens:
//
//	12 minutes pass                 also: seconds, hours, days. Each timer that becomes due is handled at its time
//	It is DAY DATE TIME ZONE        time passes until this time: "It is Monday 2026-12-21 09:00 Europe/Berlin"
//	The bot restarts                a new process continues with the same store
//	The bot will stop while TOOL runs   the next time that TOOL runs, with an unknown outcome for the next process; also: "…, after it acted"
//	The bot is down for 2 hours     afterwards, the bot immediately does all work that became due
//	The policy becomes FILE         the bot reloads this file
//
// The indented lines show the state and the outcome of each call, then the agent's answers, and then other messages to
// people, by person. "Teo is told: …" has the first line of a new direct message. "Countersign to Teo: …" is an
// ephemeral message that only Teo sees. The card for the role that decides a request is listed only if the card shows
// several requests.
type Scenario struct {
	Name    string
	Policy  string    // path of the policy file; empty: the demo's policy
	Begins  time.Time // time at which the scenario begins; zero: now
	actions []action
}

// action is one action of a person, or one event, with the expected lines.
type action struct {
	line   int
	text   string // the line as written
	where  string // the place of a message: a channel, or "" for the same thread; nowhere for any other action
	play   func(context.Context, *player) error
	expect []string
}

// nowhere is the place of an action that is not a message.
const nowhere = "-"

// line is a kind of line without indentation.
type line struct {
	form   string // how the line is written; shown in the error about a line that matches no kind
	match  *regexp.Regexp
	action func(m []string) (action, error)
}

// Parse reads a scenario file.
func Parse(name string, text string) (Scenario, error) {
	s := Scenario{Name: name}
	lines := bufio.NewScanner(strings.NewReader(text))
	for n := 1; lines.Scan(); n++ {
		line := strings.TrimRight(lines.Text(), " \t\r")
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		if err := s.add(n, line); err != nil {
			return s, cli.Misused("%s:%d: %w", name, n, err)
		}
	}
	if len(s.actions) == 0 {
		return s, cli.Misused("%s: nobody does anything in it; write a line such as \"Sam in #support: @Countersign where is ORD-123?\"", name)
	}
	return s, lines.Err()
}

// add parses one line.
func (s *Scenario) add(n int, text string) error {
	if strings.HasPrefix(text, " ") || strings.HasPrefix(text, "\t") {
		if len(s.actions) == 0 {
			return fmt.Errorf("an expectation comes before anybody did anything")
		}
		last := &s.actions[len(s.actions)-1]
		last.expect = append(last.expect, strings.TrimSpace(text))
		return nil
	}
	if taken, err := s.head(text); taken || err != nil {
		return err
	}
	a, err := parseAction(text)
	if err != nil {
		return err
	}
	begun := func(a action) bool { return a.where != "" && a.where != nowhere }
	if a.where == "" && !slices.ContainsFunc(s.actions, begun) {
		return fmt.Errorf("the first line must name the place, as in \"Sam in #support: …\"")
	}
	a.line, a.text = n, text
	s.actions = append(s.actions, a)
	return nil
}

// head parses a line of the scenario's beginning, such as the policy file or the time.
func (s *Scenario) head(text string) (taken bool, err error) {
	file, policy := strings.CutPrefix(text, "Policy: ")
	switch {
	case len(s.actions) > 0 && policy:
		return false, fmt.Errorf("the policy comes first; later it is \"The policy becomes %s\"", file)
	case len(s.actions) > 0:
		return false, nil
	case policy:
		s.Policy = s.pathOf(file)
		return true, nil
	}
	if m := itIs.FindStringSubmatch(text); m != nil {
		s.Begins, err = readTime(m[1])
		return true, err
	}
	return false, nil
}

// pathOf returns the path of a file that the scenario names. A relative path starts at the scenario's directory.
func (s *Scenario) pathOf(file string) string {
	if filepath.IsAbs(file) {
		return file
	}
	return filepath.Join(filepath.Dir(s.Name), file)
}

func parseAction(text string) (action, error) {
	var forms []string
	for _, l := range slices.Concat(worldLines, pauseLines, interruptionLines, clientLines, verbLines, talkLines) {
		if m := l.match.FindStringSubmatch(text); m != nil {
			return l.action(m)
		}
		forms = append(forms, l.form)
	}
	return action{}, fmt.Errorf("%q is none of: %s", text, strings.Join(forms, " · "))
}

// matches reports whether a visible line matches the expected line. In the expected line, "…" stands for any text.
func matches(expected, seen string) bool {
	parts := strings.Split(expected, "…")
	for i := range parts {
		parts[i] = regexp.QuoteMeta(parts[i])
	}
	ok, err := regexp.MatchString("(?s)^"+strings.Join(parts, ".*")+"$", seen)
	return err == nil && ok
}
