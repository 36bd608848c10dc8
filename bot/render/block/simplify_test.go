package block

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/slack-go/slack"

	"countersign/bot/render/control"
	"countersign/bot/slackapi"
)

func none(string) bool { return false }

// checkSizes checks a message against Slack's size limits, as the size guard does before sending.
func checkSizes(t *testing.T, m Message) {
	t.Helper()
	body, err := m.Body()
	if err != nil {
		t.Fatal(err)
	}
	var fields map[string]any
	if err := json.Unmarshal(body, &fields); err != nil {
		t.Fatal(err)
	}
	if m.Text == "" {
		t.Error("the message has no text")
	}
	for _, fault := range slackapi.CheckSizes(fields) {
		t.Errorf("Slack would refuse this (%s): %s %s", fault.Code, fault.At, fault.Reason)
	}
}

// Every message with a golden file has simpler forms that Slack accepts. Each form contains all of the message's text.
// Each form with blocks also contains all buttons.
func TestSimplify(t *testing.T) {
	files, err := filepath.Glob("../testdata/*.json")
	if err != nil {
		t.Fatal(err)
	}
	tried := 0
	for _, file := range files {
		var m struct {
			Text   string       `json:"text"`
			Blocks slack.Blocks `json:"blocks"`
		}
		raw, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if json.Unmarshal(raw, &m) != nil || m.Text == "" || len(m.Blocks.BlockSet) == 0 {
			continue // the file has several messages, or a form
		}
		tried++
		t.Run(filepath.Base(file), func(t *testing.T) {
			whole := Message{Text: m.Text, Blocks: m.Blocks.BlockSet}
			var before any
			if err := json.Unmarshal(raw, &before); err != nil {
				t.Fatal(err)
			}
			texts, buttons := leaves(before)
			for form, kinds := range map[Simplicity][]string{Undecorated: usualKinds, SectionsOnly: plainestKind} {
				simpler, complete := Simplify(whole, form, none)
				checkSizes(t, simpler)
				if len(simpler.Blocks) == 0 {
					t.Errorf("form %d has no blocks", form)
				}
				for _, kind := range simpler.Kinds() {
					if !slices.Contains(kinds, kind) {
						t.Errorf("form %d has a %s", form, kind)
					}
				}
				body, err := simpler.Body()
				if err != nil {
					t.Fatal(err)
				}
				var after any
				if err := json.Unmarshal(body, &after); err != nil {
					t.Fatal(err)
				}
				now, left := leaves(after)
				said := strings.Join(now, "\n")
				for _, text := range texts {
					for line := range strings.Lines(text) {
						if line = strings.TrimSpace(line); len(line) < 2000 && !strings.Contains(said, line) {
							t.Errorf("form %d does not say %q", form, line)
						}
					}
				}
				for _, b := range buttons {
					if !slices.Contains(left, b) {
						t.Errorf("form %d lacks the button %s", form, b)
					}
				}
				if !complete {
					t.Errorf("form %d does not count as complete", form)
				}
			}
			text, complete := Simplify(whole, TextOnly, none)
			if len(text.Blocks) > 0 || complete || strings.Contains(text.Text, "Buttons: ") || strings.Contains(text.Text, noButtons) != (insteadOfButtons(whole.Blocks) != "") {
				t.Errorf("the text alone: %q", text.Text)
			}
			if n := Width(text.Text); n > slackapi.MaxMessageText {
				t.Errorf("the text alone has %d characters", n)
			}
		})
	}
	if tried < 80 {
		t.Fatalf("only %d golden messages were tried", tried)
	}
}

// leaves returns the texts that a message shows, and the values of its buttons.
func leaves(v any) (texts, buttons []string) {
	var walk func(v any)
	walk = func(v any) {
		switch v := v.(type) {
		case []any:
			for _, item := range v {
				walk(item)
			}
		case map[string]any:
			switch v["type"] {
			case "button":
				buttons = append(buttons, fmt.Sprint(v["action_id"], " ", v["value"], v["url"]))
				return
			case "context_actions":
				return
			case "task_card":
				texts = append(texts, v["title"].(string))
			}
			for key, part := range v {
				if s, ok := part.(string); ok && key == "text" && v["type"] != "link" {
					texts = append(texts, s)
				}
				walk(part)
			}
		}
	}
	walk(v.(map[string]any)["blocks"])
	return texts, buttons
}

// If a message is shown without its buttons, its text says what people can do instead, and names the choices.
func TestInsteadOfButtons(t *testing.T) {
	for _, c := range []struct {
		acts []string
		want string
	}{
		{[]string{control.ActArguments}, ""},
		{[]string{control.ActApprove, control.ActReject, control.ActArguments}, "Decide on my Home tab, or write /countersign pending."},
		{[]string{control.ActChoose + "0", control.ActChoose + "1"}, "Write one of these, or an answer of your own: Red · Blue"},
		{[]string{control.ActResume}, "Write /countersign resume to resume everything."},
		{[]string{control.ActFillIn, control.ActNoAnswer}, "So it can't be answered here; when the time is over, the tool is told that nobody answered."},
	} {
		p := new(Builder)
		p.Para(Say("words"))
		var row []slack.BlockElement
		for i, act := range c.acts {
			row = append(row, Button(act, []string{"Red", "Blue", "Green"}[i], "x", slack.StyleDefault))
		}
		p.Buttons("", row...)
		got, _ := Simplify(Single(p).Messages[0], TextOnly, none)
		want := "words"
		if c.want != "" {
			want += "\nSlack refuses the buttons of this message. " + c.want
		}
		if got.Text != want {
			t.Errorf("%v: %q", c.acts, got.Text)
		}
	}
}

// Blocks of a kind that Slack refuses are left out. All other blocks stay unchanged.
func TestSimplifyRefusedKinds(t *testing.T) {
	table := slack.NewTableBlock("").AddRow(slack.NewTableRawTextCell("cell"))
	m := Message{Text: "words\nButtons: Go", Blocks: []slack.Block{
		slack.NewHeaderBlock(PlainText("Head")), table, slack.NewTaskCardBlock("c1", "Refund").WithStatus(slack.TaskCardStatusComplete),
		slack.NewActionBlock("b", Button("go", "Go", "v", slack.StyleDefault)),
	}}
	for _, c := range []struct {
		refused []string
		kinds   string
	}{
		{nil, "header table task_card actions"},
		{[]string{"task_card"}, "header table rich_text actions"},
		{[]string{"task_card", "rich_text"}, "header table section actions"},
		{[]string{"actions"}, ""},
		{[]string{"section", "rich_text", "header"}, ""},
	} {
		got, whole := Simplify(m, AsDrawn, func(kind string) bool { return slices.Contains(c.refused, kind) })
		if kinds := strings.Join(got.Kinds(), " "); kinds != c.kinds || whole != (kinds != "") {
			t.Errorf("without %v: %q, whole %v", c.refused, kinds, whole)
		}
	}
	text, _ := Simplify(m, TextOnly, none)
	if text.Text != "words"+noButtons+insteadDecide {
		t.Errorf("%q", text.Text)
	}
}

func TestChunks(t *testing.T) {
	for _, text := range []string{"", "short", strings.Repeat("ä", 7000), strings.Repeat("line of it\n", 900)} {
		parts := chunks(text, 3000)
		if strings.Join(parts, "") != text {
			t.Errorf("something is lost of %d bytes", len(text))
		}
		for _, p := range parts {
			if len([]rune(p)) > 3000 {
				t.Errorf("a part has %d characters", len([]rune(p)))
			}
		}
	}
}
