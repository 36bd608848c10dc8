package markdown

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/slack-go/slack"
)

// sketch writes pieces as one line each: the kind of block, and the text with its styles.
func sketch(pieces []Piece) (out []string) {
	for _, p := range pieces {
		switch e := p.Element.(type) {
		case *slack.RichTextSection:
			out = append(out, "text: "+styled(e.Elements))
		case *slack.RichTextQuote:
			out = append(out, "quote: "+styled(e.Elements))
		case *slack.RichTextPreformatted:
			kind := "code: "
			if p.Table != nil {
				kind = "table: "
			}
			out = append(out, kind+styled(e.Elements))
		case *slack.RichTextList:
			for i, item := range e.Elements {
				sign := strings.Repeat(" ", e.Indent) + "- "
				if e.Style == slack.RTEListOrdered {
					sign = fmt.Sprintf("%s%d. ", strings.Repeat(" ", e.Indent), e.Offset+i+1)
				}
				out = append(out, sign+styled(item.(*slack.RichTextSection).Elements))
			}
		}
	}
	return out
}

func styled(parts []slack.RichTextSectionElement) string {
	var b strings.Builder
	for _, p := range parts {
		switch p := p.(type) {
		case *slack.RichTextSectionLinkElement:
			fmt.Fprintf(&b, "{link %s}", p.URL)
		case *slack.RichTextSectionTextElement:
			style := ""
			if s := p.Style; s != nil {
				style = map[bool]string{true: "b"}[s.Bold] + map[bool]string{true: "i"}[s.Italic] + map[bool]string{true: "s"}[s.Strike] + map[bool]string{true: "c"}[s.Code]
			}
			if style == "" {
				b.WriteString(p.Text)
			} else {
				fmt.Fprintf(&b, "{%s %s}", style, p.Text)
			}
		}
	}
	return b.String()
}

func TestParse(t *testing.T) {
	for text, want := range map[string][]string{
		"# Refunds #\nThe **refund**\nof `ORD-1`": {"text: {b Refunds }", "text: The {b refund}\nof {c ORD-1}"},
		"**bold _and italic_** ~~gone~~ *a*":      {"text: {b bold }{bi and italic} {s gone} {i a}"},
		"snake_case_name and 2*3*4":               {"text: snake_case_name and 2{i 3}4"},
		"Total:\n---\nnext":                       {"text: Total:", "text: ———", "text: next"},
		"> one\n> two\nthree":                     {"quote: one\ntwo", "text: three"},
		"```go\nx := 1\n```\nafter":               {"code: x := 1", "text: after"},
		"~~~\nnever closed":                       {"code: never closed"},
		"| a | b |\n|---|--:|\n| 1 | 2 | 3 |":     {"table: a | b | \n1 | 2 | 3"},
		"a | b, no table":                         {"text: a | b, no table"},

		// No part of the Markdown text is hidden. Link targets, titles, raw HTML and link definitions stay visible.
		"[bank](https://evil.example/)":            {"text: bank ({link https://evil.example/})"},
		"![x](https://evil.example/p.png)":         {"text: x ({link https://evil.example/p.png})"},
		"[click](javascript:alert(1))":             {"text: click (javascript:alert(1))"},
		`[t](http://a.example "title")`:            {`text: [t]({link http://a.example} "title")`},
		"<!channel> <b>raw</b> <!-- hidden -->":    {"text: <!channel> <b>raw</b> <!-- hidden -->"},
		"[a]: http://evil.example\n\n[a]":          {"text: [a]: {link http://evil.example}", "text: [a]"},
		`5 \* 3 &lt; x`:                            {`text: 5 \* 3 &lt; x`},
		"    indented\n    twice":                  {"text: indented\ntwice"},
		"see http://a.example/x, or not \u202etxt": {"text: see {link http://a.example/x}, or not ⟨U+202E⟩txt"},

		// The numbers of a list continue after blank lines and deeper lists.
		"1. a\n2. b\n   - x\n   - y\n3. c": {"1. a", "2. b", " - x", " - y", "3. c"},
		"1. a\n   - x\n1. b\n   - y\n1. c": {"1. a", " - x", "2. b", " - y", "3. c"},
		"1. a\n\n2. b\n\nbetween\n\n3. c":  {"1. a", "2. b", "text: between", "3. c"},
		"- a\n1. b\n- c\n1. d":             {"- a", "1. b", "- c", "1. d"},
		"2026. A year\n7) a number":        {"2026. A year", "2027. a number"},
		"* a\n+ b\n• c":                    {"- a", "- b", "- c"},
		"":                                 nil,
		" \n\n ":                           nil,
	} {
		if diff := cmp.Diff(want, sketch(Parse(text))); diff != "" {
			t.Errorf("%q (-want +got):\n%s", text, diff)
		}
	}
}

// The part that Settled returns is parsed in the same way as the beginning of the whole text. Therefore a streamed
// answer looks like the final one.
func TestSettled(t *testing.T) {
	text := "# A\n\nOne\ntwo\n\n1. a\n\n2. b\n\n```\ncode\n\nmore\n```\n| a |\n|---|\n| 1 |\n\nlast"
	var streamed []string
	for from, i := 0, 0; i <= len(text); i++ {
		n := Settled(text[from:i])
		if from+n > i {
			t.Fatalf("%q: %d bytes are settled", text[from:i], n)
		}
		streamed = append(streamed, sketch(Parse(text[from:from+n]))...)
		from += n
	}
	whole := sketch(Parse(text))
	if diff := cmp.Diff(whole[:len(whole)-1], streamed); diff != "" {
		t.Errorf("whole (-) and streamed (+):\n%s", diff)
	}
	if n := Settled("```\na\n\nb\n"); n != 0 {
		t.Errorf("%d bytes of an open fence are settled", n)
	}
	for blocks := range len(whole) + 1 { // the settled part ends with the last whole block that fits
		n, pieces := SettledWithin(text, blocks, 1000)
		if diff := cmp.Diff(whole[:min(blocks, len(whole)-1)], sketch(pieces), cmpopts.EquateEmpty()); diff != "" {
			t.Errorf("within %d blocks (-: want):\n%s", blocks, diff)
		}
		if diff := cmp.Diff(sketch(pieces), sketch(Parse(text[:n])), cmpopts.EquateEmpty()); diff != "" {
			t.Errorf("within %d blocks, its pieces (-) and those of its text (+):\n%s", blocks, diff)
		}
	}
	if n, pieces := SettledWithin("One\n\nTwo\n\n", 9, 5); n != 5 || len(pieces) != 1 {
		t.Errorf("within 5 characters: %d bytes, %d pieces", n, len(pieces))
	}
}

// The text may be hostile. The parser needs a few hundredths of a second for any 100,000 characters. A parser with
// quadratic time would take many seconds.
func TestParseTime(t *testing.T) {
	const n = 100_000
	for _, part := range []string{
		"*", "*a ", "*_", "[", "[a](", "![", "`", "``a", ">", "> ", "- ", "1. ", "|", "_a", "~~a", "http://a", "http://a ", "**a *b ", "a|\n--\n\n", "a|\n--\nb\n", "|a|\n|-|\n", "# ",
		"```\n", "\n", " ",
	} {
		text := strings.Repeat(part, n/len(part))
		began := time.Now()
		Parse(text)
		Settled(text)
		if took := time.Since(began); took > 20*time.Second {
			t.Errorf("%d times %q took %v", n/len(part), part, took)
		}
	}
}

// Pieces and messages stay within their limits, and no text is lost.
func TestMessages(t *testing.T) {
	text := strings.Repeat("A line of words that fill the page.\n", 1500) + "```\n" + strings.Repeat("x", 9000) + "\n```\n" + strings.Repeat("- "+strings.Repeat("i", 50)+"\n", 900)
	pieces := Parse(text)
	letters := 0
	for _, message := range Messages(pieces) {
		size := 0
		for _, p := range message {
			size += p.Size
			letters += strings.Count(p.Plain, "x") + strings.Count(p.Plain, "i")
			if p.Size > MaxBlockText {
				t.Errorf("a piece has %d characters", p.Size)
			}
		}
		if size > MaxMessageText || len(message) > MaxBlocks {
			t.Errorf("a message has %d characters in %d blocks", size, len(message))
		}
	}
	if want := strings.Count(text, "x") + strings.Count(text, "i"); letters != want {
		t.Errorf("%d of %d letters are left", letters, want)
	}
}
