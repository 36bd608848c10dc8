package pagetest

import (
	"encoding/json"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/slack-go/slack"
)

// TestEveryBlockIsDrawn sends one block and one element of each kind that slack-go defines and that apps can send. The
// page must show the text of each block and element. If a new version of slack-go adds a kind, the test fails until
// there is a sample of the new kind.
func TestEveryBlockIsDrawn(t *testing.T) {
	b := openBrowser(newHarness(t))
	whole := messageSamples()
	samples := append(whole, plainSamples()...)
	b.inputs()
	seen := kinds{}
	seen.add(b, slack.NewAlertBlock(plain("x")))
	seen.add(b, slack.NewFileBlock("", "x", "remote")) // refused in a message; see below
	for _, element := range inputs() {
		seen.add(b, element)
	}
	for _, s := range samples {
		seen.add(b, s.block)
	}
	for name, kind := range constants(t, "MessageBlockType", "MessageElementType", "RichTextElementType", "RichTextSectionElementType") {
		if !seen[kind] && received[kind] == "" {
			t.Errorf("slack-go's %s (%q) is in no sample", name, kind)
		}
	}
	for _, theme := range themes() {
		b.become("U0001", "C0001")
		b.page.Until("the theme is "+theme, `(document.documentElement.dataset.theme = "`+theme+`") !== ""`)
		for i, s := range samples {
			if theme == "light" {
				if _, _, err := b.api.PostMessage("C0001", slack.MsgOptionText(string(s.block.BlockType()), false), slack.MsgOptionBlocks(s.block)); err != nil {
					t.Fatalf("%s: %v", s.block.BlockType(), err)
				}
			}
			b.drawn(s, i < len(whole))
			if i%3 == 2 || i == len(samples)-1 {
				b.page.Shot(fmt.Sprintf("blocks-%s-%02d", theme, i/3))
			}
		}
	}
	_, _, err := b.api.PostMessage("C0001", slack.MsgOptionBlocks(slack.NewFileBlock("", "x", "remote")))
	if err == nil || err.Error() != "invalid_blocks" {
		t.Errorf("a file block, which only Slack itself posts: %v", err)
	}
}

// received lists the kinds of blocks and elements that apps can't send. Some of these kinds are only in Slack's own
// messages. The other kinds are slack-go's names for unknown kinds.
var received = map[string]string{
	"rich_text_unknown": "slack-go's own", "unknown": "slack-go's own",
	"attachment_mention": "Slack's clients", "canvas": "Slack's clients", "canvas_message_unfurl": "Slack's clients", "canvas_user_mention": "Slack's clients", "file": "Slack's clients",
	"list_record": "Slack's clients", "message_mention": "Slack's clients", "salesforce_data_field": "Slack's clients", "tag": "Slack's clients",
	"work_object_mention": "Slack's clients", "workflow_mention": "Slack's clients",
}

// The method "drawn" checks that the page draws the last message's block. If whole is false, the page draws only the
// text of the block.
func (b *browser) drawn(s sample, whole bool) {
	b.Helper()
	kind := string(s.block.BlockType())
	block := messages + ` [data-block-type=` + kind + `]`
	b.page.Until(kind+" is drawn", `(() => { const e = [...document.querySelectorAll("`+block+`")].at(-1); e?.scrollIntoView({block: "center"}); for (const d of e?.querySelectorAll("details.task") ?? []) d.open = true; return e !== undefined && e.checkVisibility() && (e.querySelector(".fallback") === null) === `+strconv.FormatBool(whole)+`; })()`)
	for _, text := range s.shows {
		b.sees(block, text)
	}
}

// The method "inputs" opens a modal with every kind of input and with an alert. Only modals may have alerts.
func (b *browser) inputs() {
	b.Helper()
	blocks := []slack.Block{slack.NewAlertBlock(plain("Mind the gap"))}
	var fields []string
	for i, element := range inputs() {
		label := fmt.Sprintf("Field %d: %s", i, element.ElementType())
		fields = append(fields, label)
		blocks = append(blocks, slack.NewInputBlock("", plain(label), nil, element).WithOptional(true))
	}
	b.opens.Blocks.BlockSet = blocks
	for _, theme := range themes() {
		b.become("U0001", "C0001")
		b.page.Until("the theme is "+theme, `(document.documentElement.dataset.theme = "`+theme+`") !== ""`)
		b.focus("[data-testid=composer]")
		b.keys("/countersign form")
		b.press("Enter")
		b.sees(modal+" [data-block-type=alert]", "Mind the gap")
		for i, label := range fields {
			b.sees(modal+" [data-block-type=input]", label)
			b.page.Until(label+" has its control", fmt.Sprintf("(() => { const e = [...document.querySelectorAll(%q)][%d]; e?.scrollIntoView({block: 'center'}); return e?.querySelector('input, textarea, [data-testid=file_input], [data-testid]') !== null; })()", modal+" [data-block-type=input]", i))
			if i%6 == 5 {
				b.page.Shot(fmt.Sprintf("inputs-%s-%d", theme, i/6))
			}
		}
		b.page.Until("everything in the form is drawn", `![...document.querySelectorAll("`+modal+` [data-block-type=input] .fallback")].some((e) => e.dataset.testid !== "file_input")`)
		b.page.Until("the form is closed", `(() => { document.querySelector("`+modal+` [data-testid=modal-close]")?.click(); return !document.querySelector("`+modal+`"); })()`)
		b.next()
	}
}

// The function "themes" returns the themes to draw. The dark theme differs only in colours, so it is drawn only if
// screenshots are stored.
func themes() []string {
	if os.Getenv("COUNTERSIGN_SCREENSHOTS") == "" {
		return []string{"light"}
	}
	return []string{"light", "dark"}
}

// kinds is the set of types in the samples.
type kinds map[string]bool

func (k kinds) add(b *browser, v any) {
	b.Helper()
	raw, err := json.Marshal(v)
	if err != nil {
		b.Fatal(err)
	}
	var decoded any
	if err := json.Unmarshal(raw, &decoded); err != nil {
		b.Fatal(err)
	}
	k.collect(decoded)
}

func (k kinds) collect(v any) {
	switch v := v.(type) {
	case []any:
		for _, item := range v {
			k.collect(item)
		}
	case map[string]any:
		if kind, ok := v["type"].(string); ok {
			k[kind] = true
		}
		for _, item := range v {
			k.collect(item)
		}
	}
}

// constants returns slack-go's constants of the types, by name.
func constants(t *testing.T, types ...string) map[string]string {
	t.Helper()
	out, err := exec.Command("go", "list", "-f", "{{.Dir}}", "github.com/slack-go/slack").Output()
	if err != nil {
		t.Fatal(err)
	}
	files, err := filepath.Glob(filepath.Join(strings.TrimSpace(string(out)), "block*.go"))
	if err != nil || len(files) == 0 {
		t.Fatalf("slack-go's source was not found: %v", err)
	}
	found := map[string]string{}
	for _, name := range files {
		file, err := parser.ParseFile(token.NewFileSet(), name, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		ast.Inspect(file, func(n ast.Node) bool {
			spec, ok := n.(*ast.ValueSpec)
			if !ok {
				return true
			}
			kind, _ := spec.Type.(*ast.Ident)
			for i, value := range spec.Values {
				literal, isLiteral := value.(*ast.BasicLit)
				choice := strings.HasPrefix(strings.TrimPrefix(spec.Names[i].Name, "Multi"), "OptType") // select menus, whose type is string
				if kind == nil || !isLiteral || !choice && !slices.Contains(types, kind.Name) {
					continue
				}
				if text, err := strconv.Unquote(literal.Value); err == nil {
					found[spec.Names[i].Name] = text
				}
			}
			return true
		})
	}
	if len(found) < 60 {
		t.Fatalf("only %d kinds were found in slack-go's source", len(found))
	}
	return found
}
