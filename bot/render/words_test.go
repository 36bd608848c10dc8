package render

import (
	"encoding/json"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// These values limit what a person has to read before they decide. The words on buttons count. The arguments and the
// words of the requester do not count.
const (
	plainWords     = 70
	wordsWithMore  = 110 // words of a card with stages, an edit, a question, or a warning
	decidedLines   = 2
	buttonsOnARow  = 4
	unknownWords   = 110 // words of the question about an unknown outcome
	minCardsCounts = 45
)

// The slice "more" lists the cards that may have more than plainWords words.
var more = []string{
	"again_card", "again_card_did_not", "again_card_earlier", "again_card_happened", "again_card_own", "card_answer_edited", "card_deleted", "card_edited", "card_handed_on", "card_hostile", "card_long",
	"card_own_agreed", "card_remarks", "card_reworded", "card_roles", "card_stages", "card_step_up", "paused_card",
	"tool_preview_critical", "tool_preview_hostile", "tool_preview_long", "tool_preview_no", "tool_preview_no_typed", "tool_preview_failed", "tool_preview_paused", "tool_preview_current",
}

// cardCount counts the words and lines of a card, and the buttons in its longest row.
type cardCount struct{ words, lines, row int }

// A card is short enough that people read it before they decide, and its buttons fit on one row.
func TestWordsOfCards(t *testing.T) {
	counted := map[string]cardCount{}
	pending := map[string]bool{}
	for _, pattern := range []string{"card_*", "again_card*", "paused_card*", "tool_preview_*", "unknown*"} {
		files, err := filepath.Glob(filepath.Join("testdata", pattern+".json"))
		if err != nil {
			t.Fatal(err)
		}
		for _, path := range files {
			name := strings.TrimSuffix(filepath.Base(path), ".json")
			if strings.HasPrefix(name, "card_queue") {
				continue
			}
			raw, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			var m struct{ Blocks []map[string]any }
			if err := json.Unmarshal(raw, &m); err != nil {
				t.Fatal(err)
			}
			counted[name] = countCard(m.Blocks)
			pending[name] = strings.Contains(string(raw), `"type": "header"`) || strings.Contains(string(raw), `"action_id": "reject"`) || strings.Contains(string(raw), `"rich_text_preformatted"`)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(counted)) {
		c, limit := counted[name], plainWords
		switch {
		case slices.Contains(more, name):
			limit = wordsWithMore
		case strings.HasPrefix(name, "unknown"):
			limit = unknownWords
		}
		t.Logf("%-26s %4d words of %4d  %2d lines  %d buttons in a row", name, c.words, limit, c.lines, c.row)
		if c.words > limit || c.row > buttonsOnARow {
			t.Errorf("%s has %d words besides the arguments, and at most %d buttons in a row; the limits are %d and %d", name, c.words, c.row, limit, buttonsOnARow)
		}
		if !pending[name] && c.lines > decidedLines {
			t.Errorf("%s is decided, and has %d lines; the limit is %d", name, c.lines, decidedLines)
		}
	}
	if len(counted) < minCardsCounts {
		t.Errorf("only %d cards were counted", len(counted))
	}
}

// countCard counts the words and lines of blocks, and the longest row of buttons.
func countCard(blocks []map[string]any) (c cardCount) {
	add := func(text string) {
		c.words += len(strings.Fields(text))
		c.lines += strings.Count(text, "\n") + 1
	}
	for _, b := range blocks {
		switch b["type"] {
		case "header":
			add(b["text"].(map[string]any)["text"].(string))
		case "context":
			for _, e := range b["elements"].([]any) {
				add(e.(map[string]any)["text"].(string))
			}
		case "actions":
			row := b["elements"].([]any)
			c.row = max(c.row, len(row))
			for _, e := range row {
				c.words += len(strings.Fields(e.(map[string]any)["text"].(map[string]any)["text"].(string)))
			}
		case "rich_text":
			for _, e := range b["elements"].([]any) {
				if section := e.(map[string]any); section["type"] == "rich_text_section" {
					add(sectionText(section["elements"].([]any)))
				}
			}
		}
	}
	return c
}

// sectionText returns the text of a section as people read it: a name for a person, and a time for a date.
func sectionText(parts []any) string {
	var b strings.Builder
	for _, part := range parts {
		switch p := part.(map[string]any); p["type"] {
		case "user", "usergroup":
			b.WriteString("@somebody")
		case "date":
			b.WriteString(strings.NewReplacer("{time}", "12:30", "{date_short_pretty}", "Today", "{date_long}", "Monday, March 2").Replace(p["format"].(string)))
		default:
			text, _ := p["text"].(string)
			b.WriteString(text)
		}
	}
	return b.String()
}
