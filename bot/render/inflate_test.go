package render

import (
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"

	"countersign/approvers"
	"countersign/approvers/workflow/view"
	"countersign/bot/bottest"
	"countersign/bot/render/block"
	"countersign/bot/render/thread"
	"countersign/bot/render/wording"
	"countersign/internal/testkit"
	"countersign/store"
)

// The map "wordy" lists the fields of the state that hold texts of people, models and tools, or names. The length and
// the content of these texts are unlimited. The value true marks texts. The value false marks names, because names are
// shorter.
var wordy = map[string]bool{
	"Preview": true, "PreviewFault": true, "Quote": true, "Reason": true, "Text": true, "Result": true, "Why": true, "Note": true, "Prompt": true, "Fault": true,
	"AskerName": false, "Name": false, "ByName": false, "ClosedName": false, "AuthorName": false, "Title": false, "Tool": false, "ToName": false, "GivenBy": false,
}

// The map "many" names the list fields that may be longer than in the fixtures.
var many = map[string]bool{"Why": true, "Decisions": true, "Edits": true, "Invited": true, "Joined": true, "Calls": true, "Queued": true, "Covers": true, "Lacks": true}

// alphabets are the parts of random texts: characters of each width, characters that are longer when shown, and
// characters with a meaning in Slack or Markdown.
var alphabets = []string{"x", "word ", "界", "𝕏", "&<>", "\u202e", "\u200b\u2066", "\U000E0041", "`*_~|", "line\n", "- a\n- b\n", "```\ncode\n", "| a | b |\n|---|---|\n| 1 | 2 |\n", "<!channel> <@U0001> ", "\x00\x1b[31m", "1. one\n"}

// inflater makes variants of a state with other texts and longer lists.
type inflater struct{ *rand.Rand }

func (f inflater) text(long bool) string {
	lengths := []int{0, 1, 20, 75, 150, 300, 301}
	if long {
		lengths = append(lengths, 1500, 3000, 3001, 9000)
	}
	n := lengths[f.IntN(len(lengths))]
	var b strings.Builder
	for b.Len() < n {
		a := alphabets[f.IntN(len(alphabets))]
		b.WriteString(strings.Repeat(a, 1+f.IntN(max(1, n/len(a)))))
	}
	runes := []rune(b.String())
	return string(runes[:min(n, len(runes))])
}

func (f inflater) args() json.RawMessage {
	args := map[string]any{}
	for range 1 + f.IntN(6) {
		args[f.text(false)] = f.text(f.IntN(3) == 0)
	}
	raw, err := json.Marshal(args)
	if err != nil {
		panic(err)
	}
	return raw
}

// value returns a copy of v with new texts. Half of the texts stay unchanged.
func (f inflater) value(name string, v reflect.Value) reflect.Value {
	switch v.Interface().(type) {
	case *approvers.Policy:
		return v
	case json.RawMessage:
		if name == "Args" && f.IntN(2) == 0 {
			return reflect.ValueOf(f.args())
		}
		return v
	}
	switch v.Kind() {
	case reflect.Pointer:
		if v.IsNil() {
			return v
		}
		out := reflect.New(v.Type().Elem())
		out.Elem().Set(f.value(name, v.Elem()))
		return out
	case reflect.Struct:
		out := reflect.New(v.Type()).Elem()
		out.Set(v)
		for i := range v.NumField() {
			if t := v.Type().Field(i); t.IsExported() {
				out.Field(i).Set(f.value(t.Name, v.Field(i)))
			}
		}
		return out
	case reflect.Slice:
		out := reflect.MakeSlice(v.Type(), 0, v.Len())
		times := 1
		if many[name] && f.IntN(3) == 0 {
			times = 1 + f.IntN(40)
		}
		for range times {
			for i := range v.Len() {
				out = reflect.Append(out, f.value(name, v.Index(i)))
			}
		}
		if v.IsNil() {
			return v
		}
		return out
	case reflect.String:
		if long, ok := wordy[name]; ok && f.IntN(2) == 0 {
			return reflect.ValueOf(f.text(long)).Convert(v.Type())
		}
	}
	return v
}

// An inflater also makes states that can't occur. The function "legal" repairs them. It keeps the message and the head,
// because only the bot writes heads. It gives each call a request of its own. In a bundle, it takes back arguments and
// previews that are too long, because calls with long arguments have their own cards.
func legal(s *view.Model, before view.Model) {
	s.Message, s.Head = before.Message, before.Head
	s.Steps = slices.DeleteFunc(s.Steps, func(step view.Step) bool { return !thread.IsBrief(step) }) // other steps have messages of their own
	if s.Message.Kind == store.OutboxBundle {
		s.Calls = s.Calls[:len(before.Calls)]
	}
	for i := range s.Calls {
		r := s.Calls[i].Request
		if r == nil {
			continue
		}
		r.ID = fmt.Sprintf("req_%d", i+1)
		if was := before.Calls[i%len(before.Calls)].Request; s.Message.Kind == store.OutboxBundle && len(r.Args)+len(r.Preview) > 400 {
			r.Args, r.Preview = was.Args, was.Preview
		}
	}
}

// inflated draws the state several more times with other texts and longer lists. It checks that each drawing is within
// Slack's limits.
func inflated(t *testing.T, s view.Model) {
	t.Helper()
	f := inflater{testkit.Chance(testkit.Seed(t), 1)}
	for range testkit.Size(t, "COUNTERSIGN_STATES", 2) {
		other := f.value("", reflect.ValueOf(s)).Interface().(view.Model)
		legal(&other, s)
		d, _, err := Draw(wording.View{Model: other, WorkspaceURL: bottest.WorkspaceURL, Tool: wording.ToolDescription{Text: block.Clip(block.OneLine(f.text(true)), block.MaxNote), Claims: bottest.EveryClaim().Words()}})
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range d.Messages {
			withinLimits(t, m)
		}
		if t.Failed() {
			raw, _ := json.Marshal(other.Request)
			t.Fatalf("a %s of this state: %.3000s", s.Message.Kind, raw)
		}
	}
}

// TestInflation checks that inflater makes states of enough different kinds.
func TestInflation(t *testing.T) {
	f := inflater{rand.New(rand.NewPCG(1, 1))}
	s := bottest.ViewModel(bottest.Request(bottest.RefundArgs))
	seen := map[int]bool{}
	for range 200 {
		other := f.value("", reflect.ValueOf(s)).Interface().(view.Model)
		seen[len(other.Request.Preview)] = true
		if s.Request.Preview != "Refund of $49.99 for order ORD-123" || other.Policy != s.Policy {
			t.Fatal("the state itself was changed, or the policy copied")
		}
		if !json.Valid(other.Request.Args) {
			t.Fatalf("impossible arguments: %q", other.Request.Args)
		}
	}
	if len(seen) < 20 || !slices.ContainsFunc(slices.Collect(maps.Keys(seen)), func(n int) bool { return n > 3000 }) {
		t.Errorf("%d lengths of the preview", len(seen))
	}
}
