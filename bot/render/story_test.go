package render

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"countersign/bot/bottest"
	"countersign/bot/render/block"
)

// The text for screen readers names the available actions, repeats every heading, and describes every picture. The test
// checks this for every golden file.
func TestTextTellsTheStory(t *testing.T) {
	files, err := filepath.Glob(filepath.Join("testdata", "*.json"))
	if err != nil {
		t.Fatal(err)
	}
	messages := 0
	for _, path := range files {
		raw, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		var m struct {
			Text   *string `json:"text"`
			Blocks any     `json:"blocks"`
		}
		if json.Unmarshal(raw, &m) != nil || m.Text == nil || m.Blocks == nil {
			continue // the file has a form, which screen readers read directly
		}
		messages++
		bottest.WalkBlocks(m.Blocks, func(b map[string]any) {
			words, _ := b["text"].(map[string]any)
			text, _ := words["text"].(string)
			switch b["type"] {
			case "button":
				if !strings.Contains(*m.Text, block.Escape(text)) && !strings.Contains(*m.Text, " more") {
					t.Errorf("the text of %s does not name the button %q", path, text)
				}
			case "header":
				if !strings.Contains(*m.Text, block.Escape(text)) {
					t.Errorf("the text of %s lacks its heading %q", path, text)
				}
			case "image":
				if alt, _ := b["alt_text"].(string); alt == "" {
					t.Errorf("%s has a picture without alternative text", path)
				}
			}
		})
	}
	if messages < 50 {
		t.Errorf("only %d messages were looked at", messages)
	}
}

// A card's text says what the call does, how much, who asked, and who decides. It also names the deadline, and says
// what happens if nobody decides, and what to do.
func TestCardTellsTheStory(t *testing.T) {
	text := drawn(t, bottest.ViewModel(bottest.Request(bottest.RefundArgs))).Messages[0].Text
	for question, answer := range map[string]string{
		"what": "Refund of $49.99 for order ORD-123", "how much": "amount:   49.990", "who asked": "<@U0100> in <https://acme.slack.example/archives/C0001/p1772452800000100|#support>:\n“please refund", "who decides": "Waits for Team Lead",
		"until when": "at <!date^1772454600", "otherwise": "Rejected at ", "what to do": "Buttons: Approve · Reject… · Modify… · Details…",
	} {
		if !strings.Contains(text, answer) {
			t.Errorf("the text does not say %s: %s", question, text)
		}
	}
}
