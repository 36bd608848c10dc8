package render

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"regexp"
	"slices"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"countersign/approvers"
	"countersign/bot/bottest"
	"countersign/bot/render/argument"
	"countersign/bot/render/block"
	"countersign/bot/render/control"
	"countersign/bot/render/form"
	"countersign/bot/render/markdown"
	"countersign/bot/render/wording"
	"countersign/internal/testkit"
)

// The slice spoil lists hostile parts of texts. Such parts hide or reverse text, mention people, add links or
// formatting, or imitate other text.
var spoil = []string{
	"refund", "49.99", "ORD-123", " ", " ", "\n", "\r\n", "\t", "\x00", "\x1b[31m", "\u0085", "\u2028", "\u202e", "\u2066", "\u2069", "\u200b", "\u200d", "\u200f", "\ufeff", "\u00ad", "\u034f", "\u3164", "\u2800",
	"\ufe0f", "\ufe00", "\U000E0100", "\U000E0041", "\U000E007F", "\ue000", "\U0010FFFF", "\uFFFD", "👩\u200d💻", "❤\ufe0f", "1\ufe0f\u20e3", "e\u0301", "e\u0301\u0301\u0301\u0301\u0301", "界", "ف", "pаypal", "ＯＲＤ", "𝐩𝐚𝐲",
	"<!channel>", "<@U0002>", "<!subteam^S0001>", "<https://evil.example|bank>", "https://evil.example/x", "*bold*", "_it_", "~no~", "`code`", "```", "&lt;!here&gt;", "> quote", "• ", ":white_check_mark:",
	"⟨U+202E⟩", "⟩", "│ ", "✂️ Cut here: 3 more characters.", "✅ Approved by", `"`, `\`, `\u202e`, "{{.order_id}}", "%s", "                    ", "amount: 5",
}

func spoilt(rnd *rand.Rand) string {
	var b strings.Builder
	n := rnd.IntN(6)
	if rnd.IntN(250) == 0 {
		n = rnd.IntN(900) // more than a card can show
	}
	for range n {
		if rnd.IntN(12) == 0 {
			b.WriteRune(rune(rnd.IntN(unicode.MaxRune + 1)))
			continue
		}
		b.WriteString(spoil[rnd.IntN(len(spoil))])
	}
	return b.String()
}

// hostile returns a request with hostile argument names and values, as a model might write them.
func hostile(rnd *rand.Rand) (approvers.Request, error) {
	var members []string
	names := map[string]bool{}
	for range 1 + rnd.IntN(4) {
		name := spoilt(rnd)
		if rnd.IntN(2) == 0 {
			name = fmt.Sprint("field_", rnd.IntN(9))
		}
		name = block.Shorten(name, 200)
		if k := strings.ToLower(name); names[k] {
			continue
		} else {
			names[k] = true
		}
		var value any = spoilt(rnd)
		switch rnd.IntN(6) {
		case 0:
			value = json.Number(fmt.Sprintf("%d.%02d", rnd.IntN(1e6), rnd.IntN(100)))
		case 1:
			value = []string{spoilt(rnd), spoilt(rnd)}
		case 2:
			value = map[string]any{spoilt(rnd): spoilt(rnd), "n": nil}
		}
		n, err := json.Marshal(name)
		if err != nil {
			return approvers.Request{}, err
		}
		v, err := json.Marshal(value)
		if err != nil {
			return approvers.Request{}, err
		}
		members = append(members, string(n)+strings.Repeat(" ", rnd.IntN(3))+":"+string(v))
	}
	r := bottest.Request("{" + strings.Join(members, ", ") + "}")
	r.Preview, r.Facts.Quote, r.Facts.AskerName, r.Tool = spoilt(rnd), spoilt(rnd), spoilt(rnd), "tool_"+block.Shorten(spoilt(rnd), 40)
	r.Facts.Asker = approvers.PersonID(map[bool]string{true: "T0001/U0100", false: "operator:" + block.Shorten(spoilt(rnd), 30)}[rnd.IntN(2) == 0])
	r.PreviewFault, r.Plan.Why = spoilt(rnd), []string{spoilt(rnd), spoilt(rnd)}
	r.Remarks = []approvers.Remark{{Kind: approvers.Comment, By: "T0001/U0003", Name: spoilt(rnd), Text: spoilt(rnd), At: bottest.Noon}}
	r.Digest = approvers.Digest(r.Execution, r.Tool, r.ToolHash, r.Args)
	return r, nil
}

// readTexts collects all visible strings of a message or view. It collects strings in preformatted blocks separately.
// mrkdwn reports whether any of the strings uses mrkdwn.
func readTexts(v any, exact bool, all, preformatted *[]string) (mrkdwn bool) {
	switch v := v.(type) {
	case []any:
		for _, item := range v {
			mrkdwn = readTexts(item, exact, all, preformatted) || mrkdwn
		}
	case map[string]any:
		kind, _ := v["type"].(string)
		mrkdwn = kind == "mrkdwn" || kind == "markdown"
		for key, item := range v {
			text, isText := item.(string)
			switch {
			case isText && (key == "text" || key == "fallback" || key == "initial_value"):
				*all = append(*all, text)
				if exact {
					*preformatted = append(*preformatted, text)
				}
			case !isText:
				mrkdwn = readTexts(item, exact || kind == "rich_text_preformatted", all, preformatted) || mrkdwn
			}
		}
	}
	return mrkdwn
}

// ours matches the mrkdwn tokens that a message's text may contain: mentions of people, dates, and links into the bot's
// workspace. Other tokens are not allowed.
var ours = regexp.MustCompile(`<(@[UW][0-9A-Z]+|!date\^[0-9]+\^[^<>|]*\|[^<>|]*|https://acme\.slack\.example/[^<>|]*\|[^<>]*)>`)

// rawHidden returns a character that is invisible or changes other characters. The rule is independent of the rule of
// Visible.
func rawHidden(s string) (rune, bool) {
	for _, r := range s {
		switch {
		case r == '\n' || r == 0x200D || r == 0xFE0F || r == 0xFE0E: // used in emoji; Visible's own test checks their context
		case !unicode.IsGraphic(r), unicode.Is(unicode.Bidi_Control, r), unicode.Is(unicode.Other_Default_Ignorable_Code_Point, r), r >= 0xE0000 && r <= 0xE0FFF:
			return r, true
		}
	}
	return 0, !utf8.ValidString(s)
}

// shownAsStored compares a card, and the Slack form that shows all arguments, with the stored bytes. Both must show what
// is signed and what would run.
func shownAsStored(r approvers.Request) (whole bool, fault string) {
	v := wording.View{Model: bottest.ViewModel(r), WorkspaceURL: bottest.WorkspaceURL}
	d, body, err := Draw(v)
	if err != nil {
		return false, err.Error()
	}
	if approvers.Digest(r.Execution, r.Tool, r.ToolHash, r.Args) != r.Digest || len(d.Shows) != 1 || d.Shows[0].Digest != r.Digest {
		return false, "the digests differ"
	}
	var message map[string]any
	if err := json.Unmarshal(body, &message); err != nil {
		return false, err.Error()
	}
	var all, exact []string
	if readTexts(message, false, &all, &exact) {
		return false, "mrkdwn stands in a block"
	}
	for _, text := range all {
		if hidden, raw := rawHidden(text); raw {
			return false, fmt.Sprintf("U+%04X stands in %q", hidden, text)
		}
	}
	if left := ours.ReplaceAllString(message["text"].(string), ""); strings.ContainsAny(left, "<>") {
		at := strings.IndexAny(left, "<>")
		return false, fmt.Sprintf("a token that is not ours stands in the text: %q", left[max(0, at-40):min(len(left), at+80)])
	}
	if strings.Contains(string(body), "evil.example\",\"type\":\"link") || strings.Contains(string(body), `"url":"https://evil`) {
		return false, "somebody's link is one"
	}
	text := argument.Text(r.Args)
	if whole = d.Shows[0].Whole; whole {
		if len(exact) == 0 || exact[0] != text {
			return whole, fmt.Sprintf("not all is shown: %q for %q", exact, text)
		}
	} else {
		missing := utf8.RuneCountInString(text) - utf8.RuneCountInString(exact[0])
		cut := fmt.Sprintf("Cut here: %d more characters.", missing)
		if lineFeed := fmt.Sprintf("Cut here: %d more characters.", missing-1); !strings.HasPrefix(text, exact[0]) || !strings.Contains(string(body), cut) && !strings.Contains(string(body), lineFeed) {
			return whole, "it is cut, and does not say by how much"
		}
		if strings.Contains(string(body), `"action_id":"`+control.ActApprove+`"`) {
			return whole, "what is cut can be approved from the card"
		}
	}
	pages := markdown.Pages(text, form.MaxPageText)
	if strings.Join(pages, "") != text {
		return whole, "the pages are not the text"
	}
	for n := range pages {
		f := control.FormToken{ButtonToken: control.ButtonToken{Ref: r.ID, Message: "s_1", Post: 1, Print: "0123456789abcdef"}, Execution: r.Execution, Page: n}
		raw, err := json.Marshal(detailsFor(r, f, "U0002"))
		if err != nil {
			return whole, err.Error()
		}
		var modal map[string]any
		var seen, shown []string
		if err := json.Unmarshal(raw, &modal); err != nil || readTexts(modal, false, &seen, &shown) {
			return whole, fmt.Sprintf("mrkdwn stands in a form, or %v", err)
		}
		for _, text := range seen {
			if hidden, raw := rawHidden(text); raw {
				return whole, fmt.Sprintf("U+%04X stands in the form: %q", hidden, text)
			}
		}
		if strings.Join(shown, "") != pages[n] {
			return whole, fmt.Sprintf("page %d is not all there", n)
		}
	}
	return whole, ""
}

// For any text of a model or a person, people see what is signed and what would run. All text is visible, and a note
// marks each cut. COUNTERSIGN_INPUTS=1000000 selects the long form of the test.
func TestShownIsSigned(t *testing.T) {
	size := testkit.Size(t, "COUNTERSIGN_INPUTS", 1000)
	seed := testkit.Seed(t)
	shownAs := map[string]string{} // for short texts: the stored bytes, by the shown text
	whole, cut := 0, 0
	for n := range size {
		r, err := hostile(testkit.Chance(seed, uint64(n)))
		if err != nil {
			t.Fatal(err)
		}
		all, fault := shownAsStored(r)
		if fault != "" {
			t.Fatalf("input %d: %s\n%q", n, fault, r.Args)
		}
		if all {
			whole++
		} else {
			cut++
		}
		for _, text := range []string{argument.Text(r.Args), argument.OnOneLine(r.Args, nil)} {
			if hidden, raw := rawHidden(text); raw {
				t.Fatalf("input %d: U+%04X stands in %q", n, hidden, text)
			}
			if len(text) >= 60 || len(shownAs) >= 200_000 {
				continue
			}
			if before, known := shownAs[text]; known && !approvers.EqualArgs([]byte(before), r.Args) {
				t.Fatalf("input %d: %q and %q are both shown as %q", n, before, r.Args, text)
			}
			shownAs[text] = string(r.Args)
		}
	}
	t.Logf("inputs=%d: %d shown whole, %d cut and said so; digests that differ=0 raw hidden characters=0 silent cuts=0", size, whole, cut)
}

// On a card, the arguments may have another order, and earlier values come before the new values. Nothing else differs
// from the table of the stored bytes, and no text can look like a replaced value.
func TestShownInOrder(t *testing.T) {
	size := testkit.Size(t, "COUNTERSIGN_INPUTS", 500)
	seed := testkit.Seed(t)
	changed := 0
	for n := range size {
		rnd := testkit.Chance(seed, uint64(n))
		r, err := hostile(rnd)
		if err != nil {
			t.Fatal(err)
		}
		names, values := argument.Members(r.Args)
		before := argument.Splice(r.Args, map[string][]byte{names[rnd.IntN(len(names))]: []byte(`"before"`)}, nil)
		if rnd.IntN(3) == 0 {
			before = argument.Splice(r.Args, map[string][]byte{names[0]: nil}, nil)
		}
		rnd.Shuffle(len(names), func(i, j int) { names[i], names[j] = names[j], names[i] })
		was := argument.ChangedFrom(before, r.Args, nil)
		first := names[:rnd.IntN(len(names)+1)]
		var want []string
		for _, part := range parts(argument.Text(r.Args)) {
			name := names[slices.IndexFunc(names, func(n string) bool { return strings.HasPrefix(part, shownName(n)+":") })]
			if strings.Contains(part, " → ") && !strings.Contains(part, "\n") && !strings.HasPrefix(strings.TrimLeft(part[len(shownName(name))+1:], " "), `"`) {
				t.Fatalf("input %d: %q looks like a replaced value", n, part)
			}
			if old, is := was[name]; is {
				changed++
				value, short := argument.ShortValue(name, values[name], nil)
				if !short || !strings.HasSuffix(part, value) {
					t.Fatalf("input %d: %q is not on one line", n, part)
				}
				part = strings.TrimSuffix(part, value) + old + " → " + value
			}
			want = append(want, part)
		}
		got := parts(argument.Table(r.Args, nil, first, was))
		slices.Sort(want)
		slices.Sort(got)
		if !slices.Equal(want, got) {
			t.Fatalf("input %d: got\n%s\nwant\n%s", n, strings.Join(got, "\n"), strings.Join(want, "\n"))
		}
	}
	if changed < size/4 {
		t.Errorf("only %d values were replaced", changed)
	}
}

// shownName returns the name of an argument as a table shows it.
func shownName(name string) string {
	one := argument.Splice([]byte("{}"), map[string][]byte{name: []byte("1")}, []string{name})
	return strings.TrimSuffix(argument.Text(one), ": 1")
}

// parts splits a table of arguments into its top-level members.
func parts(text string) (out []string) {
	for line := range strings.SplitSeq(text, "\n") {
		if strings.HasPrefix(line, " ") && len(out) > 0 {
			out[len(out)-1] += "\n" + line
			continue
		}
		out = append(out, line)
	}
	return out
}
