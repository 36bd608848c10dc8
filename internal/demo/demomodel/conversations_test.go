package demomodel_test

import (
	"flag"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

var update = flag.Bool("update", false, "write the calls and answers into testdata/conversations.txt")

const conversations = "testdata/conversations.txt"

// TestConversations plays the file of conversations. The first character of a line gives the kind of the line:
//
//	=  begins a conversation, with a shop of its own
//	-  names a tool that is not offered
//	!  names a tool, and the result of the next call to this tool, which then
//	   does not run. If "run" and arguments replace the result, the tool
//	   runs with these arguments, as if an approver had changed them
//	>  is a message of a person (\n is a line break)
//	@  is a step: its calls, separated by " & "
//	<  is a line of the answer
func TestConversations(t *testing.T) {
	data, err := os.ReadFile(conversations)
	if err != nil {
		t.Fatal(err)
	}
	var played strings.Builder
	messages := 0
	for _, scene := range strings.Split(string(data), "\n\n") {
		title, _, _ := strings.Cut(scene, "\n")
		t.Run(strings.TrimPrefix(title, "= "), func(t *testing.T) {
			result, said := playConversation(t, scene)
			messages += said
			if diff := cmp.Diff(scene, result); diff != "" && !*update {
				t.Errorf("the conversation differs (-file +now):\n%s", diff)
			}
			if played.Len() > 0 {
				played.WriteString("\n\n")
			}
			played.WriteString(result)
		})
	}
	if messages < 150 {
		t.Errorf("only %d messages are tried", messages)
	}
	if *update {
		if err := os.WriteFile(conversations, []byte(played.String()), 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

// playConversation plays a conversation, and returns its text with the calls and answers of the current code.
func playConversation(t *testing.T, scene string) (result string, messages int) {
	t.Helper()
	var without []string
	for line := range strings.Lines(scene) {
		if tool, ok := strings.CutPrefix(line, "- "); ok {
			without = append(without, strings.TrimSpace(tool))
		}
	}
	c := newChat(t, without...)
	var out []string
	for line := range strings.Lines(scene) {
		line = strings.TrimSuffix(line, "\n")
		kind, rest, _ := strings.Cut(line, " ")
		switch kind {
		case "!":
			tool, fate, _ := strings.Cut(rest, " ")
			c.fates[tool] = fate
			out = append(out, line)
		case ">":
			messages++
			out = append(out, line)
			steps, answer := c.say(strings.ReplaceAll(rest, `\n`, "\n"))
			for _, step := range steps {
				out = append(out, "@ "+step)
			}
			for line := range strings.Lines(answer) {
				out = append(out, "< "+strings.TrimSuffix(line, "\n"))
			}
		case "@", "<":
		default:
			out = append(out, line)
		}
	}
	return strings.Join(out, "\n"), messages
}
