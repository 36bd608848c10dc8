package hook

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"countersign/agent/client"
)

// If an approver asks a question about a call, the hook denies the call, and the denial contains the question. The agent
// answers with a call of its shell. The hook recognizes this call, sends the answer itself, and denies the call. So
// people are not asked about the answer, and no shell reads the answer's text.

var (
	// plainPath matches a path that a shell reads without quotes.
	plainPath = regexp.MustCompile(`^[0-9A-Za-z/._-]+$`)
	// answerWords matches the end of an answer's command line: the request, the question's number, and the text in
	// quotation marks. In these quotation marks, a POSIX shell would change nothing.
	answerWords = regexp.MustCompile(`^ ([0-9A-Za-z_-]{1,64}) ([0-9]{1,4}) (?:'((?:[^']|'\\'')+)'|"([^"\\$` + "`" + `]+)")$`)
)

// answerCommand returns the beginning of the command line that answers questions. The program has the same command, for
// people.
func (h *hook) answerCommand() string {
	words := slices.Concat(h.program, []string{"answer"})
	if !plainPath.MatchString(words[0]) {
		words[0] = Quote(words[0])
	}
	return strings.Join(words, " ")
}

// Quote quotes a path for a POSIX shell.
func Quote(path string) string { return "'" + strings.ReplaceAll(path, "'", `'\''`) + "'" }

// asked reports whether the agent must first answer an approver's question. In the profile comfort, the approver is
// the agent's user, so asked returns false.
func (h *hook) asked(r *client.Request) bool {
	_, ok := r.Open()
	return ok && h.Profile == Control
}

// question returns the answer to a call about which an approver has asked a question.
func (h *hook) question(r *client.Request) Answer {
	q, _ := r.Open()
	return Answer{Out: h.deny(h.event, fmt.Sprintf("The call did not run yet. %s asks about it: %q. To answer, call your shell tool with exactly this command, and replace TEXT: "+
		"%s %s %d 'TEXT'. The hook then sends the text, and the command does not run. After that, repeat the identical call, which continues the request %s.",
		q.By, q.Text, h.answerCommand(), r.ID, q.Number, r.ID))}
}

// reply is a coding agent's answer to an approver's question.
type reply struct {
	request string
	number  int
	text    string
}

// readReply returns the agent's answer to a question, if the call is only this answer.
func (h *hook) readReply() (r reply, ok bool) {
	if h.moment != before || !slices.Contains(h.shells, strings.TrimPrefix(h.tool, h.Name+".")) {
		return r, false
	}
	var args map[string]json.RawMessage
	var command string
	if json.Unmarshal(h.input, &args) != nil || json.Unmarshal(args["command"], &command) != nil {
		return r, false
	}
	rest, ok := strings.CutPrefix(strings.TrimSpace(command), h.answerCommand())
	words := answerWords.FindStringSubmatch(rest)
	if !ok || words == nil {
		return r, false
	}
	number, err := strconv.Atoi(words[2])
	return reply{words[1], number, cmp.Or(strings.ReplaceAll(words[3], `'\''`, "'"), words[4])}, err == nil
}

// answer sends an answer to the gateway. The agent can answer only questions about waiting calls of its own session.
func (h *hook) answer(ctx context.Context, a reply) Answer {
	h.gate.Patience = cmp.Or(h.patience, askTries)
	list, err := h.memory.waiting(ctx, h)
	if err == nil && !slices.ContainsFunc(list, func(r record) bool { return r.Request == a.request }) {
		err = fmt.Errorf("no call of this session waits with the request %s", a.request)
	}
	if err == nil {
		_, err = h.gate.Answer(ctx, a.request, a.number, a.text)
	}
	if err != nil {
		return Answer{Out: h.deny(h.event, "Countersign did not confirm the answer: "+sentence(err.Error())+
			" The command did not run. Repeat the call that waits. If its question is still open, you get the question again.")}
	}
	return Answer{Out: h.deny(h.event, "The answer arrived, and the command did not run. Now repeat the call that waits for the request "+a.request+".")}
}
