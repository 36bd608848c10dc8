package workspace

import (
	"fmt"
	"strings"
	"testing"
)

func many(n int, make func(i int) any) arr {
	out := arr{}
	for i := range n {
		out = append(out, make(i))
	}
	return out
}

func button(extra obj) obj {
	b := obj{"type": "button", "action_id": "a", "text": plain("Go")}
	for k, v := range extra {
		b[k] = v
	}
	return b
}

func rich(part obj) obj { return obj{"type": "rich_text", "elements": arr{part}} }

func actions(elements ...any) obj { return obj{"type": "actions", "elements": elements} }
func input(element obj) obj {
	return obj{"type": "input", "label": plain("L"), "element": element}
}
func option(n int) obj { return obj{"text": plain(chars(n)), "value": "v"} }
func selects(options arr) obj {
	return obj{"type": "static_select", "action_id": "s", "options": options}
}
func confirm(title, text, ok, deny int) obj {
	return button(obj{"confirm": obj{"title": plain(chars(title)), "text": mrkdwn(chars(text)), "confirm": plain(chars(ok)), "deny": plain(chars(deny))}})
}

// Every limit with its largest legal value and the smallest illegal one, in two-byte
// characters where text is counted.
func TestBlockLimits(t *testing.T) {
	b := newBench(t)
	divider := func(int) any { return obj{"type": "divider"} }
	field := func(n int) func(int) any { return func(int) any { return plain(chars(n)) } }
	optionAt := func(i int) any { return obj{"text": plain("o"), "value": fmt.Sprint(i)} }
	b.blockLimits([]blockLimit{
		{"blocks of a message", many(50, divider), many(51, divider), "/blocks]"},
		{"section text", arr{obj{"type": "section", "text": plain(chars(3000))}}, arr{obj{"type": "section", "text": plain(chars(3001))}}, "/blocks/0/text/text"},
		{"fields", arr{obj{"type": "section", "fields": many(10, field(1))}}, arr{obj{"type": "section", "fields": many(11, field(1))}}, "/blocks/0/fields"},
		{"field text", arr{obj{"type": "section", "fields": many(1, field(2000))}}, arr{obj{"type": "section", "fields": many(1, field(2001))}}, "/blocks/0/fields/0/text"},
		{"header", arr{obj{"type": "header", "text": plain(chars(150))}}, arr{obj{"type": "header", "text": plain(chars(151))}}, "/blocks/0/text/text"},
		{"header in mrkdwn", arr{obj{"type": "header", "text": plain("x")}}, arr{obj{"type": "header", "text": mrkdwn("x")}}, "/blocks/0/text/type"},
		{"context elements", arr{obj{"type": "context", "elements": many(10, field(1))}}, arr{obj{"type": "context", "elements": many(11, field(1))}}, "/blocks/0/elements"},
		{"actions elements", arr{actions(many(25, func(i int) any { return button(obj{"action_id": fmt.Sprint(i)}) })...)},
			arr{actions(many(26, func(i int) any { return button(obj{"action_id": fmt.Sprint(i)}) })...)}, "/blocks/0/elements"},
		{"button text", arr{actions(button(obj{"text": plain(chars(75))}))}, arr{actions(button(obj{"text": plain(chars(76))}))}, "/blocks/0/elements/0/text/text"},
		{"button value", arr{actions(button(obj{"value": chars(2000)}))}, arr{actions(button(obj{"value": chars(2001)}))}, "/blocks/0/elements/0/value"},
		{"button url", arr{actions(button(obj{"url": "https://" + chars(2992)}))}, arr{actions(button(obj{"url": "https://" + chars(2993)}))}, "/blocks/0/elements/0/url"},
		{"button style", arr{actions(button(obj{"style": "danger"}))}, arr{actions(button(obj{"style": "warning"}))}, "/blocks/0/elements/0/style"},
		{"action_id", arr{actions(button(obj{"action_id": chars(255)}))}, arr{actions(button(obj{"action_id": chars(256)}))}, "/blocks/0/elements/0/action_id"},
		{"block_id", arr{obj{"type": "divider", "block_id": chars(255)}}, arr{obj{"type": "divider", "block_id": chars(256)}}, "/blocks/0/block_id"},
		{"confirm title", arr{actions(confirm(100, 1, 1, 1))}, arr{actions(confirm(101, 1, 1, 1))}, "/confirm/title/text"},
		{"confirm text", arr{actions(confirm(1, 300, 1, 1))}, arr{actions(confirm(1, 301, 1, 1))}, "/confirm/text/text"},
		{"confirm button", arr{actions(confirm(1, 1, 30, 1))}, arr{actions(confirm(1, 1, 31, 1))}, "/confirm/confirm/text"},
		{"deny button", arr{actions(confirm(1, 1, 1, 30))}, arr{actions(confirm(1, 1, 1, 31))}, "/confirm/deny/text"},
		{"options", arr{actions(selects(many(100, optionAt)))}, arr{actions(selects(many(101, optionAt)))}, "/elements/0/options"},
		{"option text", arr{actions(selects(arr{option(75)}))}, arr{actions(selects(arr{option(76)}))}, "/options/0/text/text"},
		{"markdown", arr{obj{"type": "markdown", "text": chars(12000)}}, arr{obj{"type": "markdown", "text": chars(12001)}}, "/blocks/0/text"},
		{"markdown of two blocks", arr{obj{"type": "markdown", "text": chars(6000)}, obj{"type": "markdown", "text": chars(6000)}},
			arr{obj{"type": "markdown", "text": chars(6000)}, obj{"type": "markdown", "text": chars(6001)}}, "/blocks/1/text"},
		{"input text", arr{input(obj{"type": "plain_text_input", "initial_value": chars(3000)})}, arr{input(obj{"type": "plain_text_input", "initial_value": chars(3001)})}, "/element/initial_value"},
		{"max_length", arr{input(obj{"type": "plain_text_input", "max_length": 3000})}, arr{input(obj{"type": "plain_text_input", "max_length": 3001})}, "/element/max_length"},

		{"block_id twice", arr{obj{"type": "divider", "block_id": "a"}, obj{"type": "divider", "block_id": "b"}}, arr{obj{"type": "divider", "block_id": "a"}, obj{"type": "divider", "block_id": "a"}}, "/blocks/1/block_id"},
		{"action_id twice in a block", arr{actions(button(nil)), actions(button(nil))}, arr{actions(button(nil), button(nil))}, "/blocks/0/elements/1/action_id"},
		{"a second table", arr{obj{"type": "table", "rows": arr{arr{obj{"type": "raw_text", "text": "x"}}}}},
			arr{obj{"type": "table", "rows": arr{arr{obj{"type": "raw_text", "text": "x"}}}}, obj{"type": "table", "rows": arr{arr{obj{"type": "raw_text", "text": "x"}}}}}, "/blocks/1"},
		{"focus twice", arr{input(obj{"type": "plain_text_input", "focus_on_load": true})},
			arr{input(obj{"type": "plain_text_input", "focus_on_load": true}), input(obj{"type": "plain_text_input", "focus_on_load": true})}, "/blocks/1/element/focus_on_load"},
		{"an unknown field", arr{actions(button(nil))}, arr{actions(button(obj{"disabled": true}))}, "/elements/0/disabled"},
		{"an unknown block", arr{obj{"type": "divider"}}, arr{obj{"type": "dividers"}}, "/blocks/0/type"},
		{"an element in the wrong place", arr{input(obj{"type": "plain_text_input"})}, arr{actions(obj{"type": "plain_text_input"})}, "/blocks/0/elements/0/type"},
		{"empty text", arr{obj{"type": "section", "text": plain("x")}}, arr{obj{"type": "section", "text": plain("")}}, "/blocks/0/text/text"},
		{"empty rich text", arr{rich(obj{"type": "rich_text_preformatted", "elements": arr{obj{"type": "text", "text": "x"}}})},
			arr{rich(obj{"type": "rich_text_preformatted", "elements": arr{obj{"type": "text", "text": ""}}})}, "/blocks/0/elements/0/elements/0/text"},
		{"rich text in the wrong place", arr{rich(obj{"type": "rich_text_list", "style": "bullet", "elements": arr{obj{"type": "rich_text_section", "elements": arr{obj{"type": "user", "user_id": "U0001"}}}}})},
			arr{rich(obj{"type": "rich_text_list", "style": "bullet", "elements": arr{obj{"type": "text", "text": "x"}}})}, "/blocks/0/elements/0/elements/0/type"},
		{"a task's status", arr{obj{"type": "task_card", "task_id": "1", "title": "t", "status": "complete"}}, arr{obj{"type": "task_card", "task_id": "1", "title": "t", "status": "done"}}, "/blocks/0/status"},
	})
}

// blockLimit is a limit of blocks: the largest legal case, the smallest illegal one, and the place at which Slack
// points.
type blockLimit struct {
	name       string
	legal, not arr
	pointer    string
}

func (b *bench) blockLimits(limits []blockLimit) {
	t := b.t.(*testing.T)
	for _, test := range limits {
		t.Run(test.name, func(t *testing.T) {
			b.t = t
			tested(test.name)
			post := func(blocks arr) reply {
				return b.form("chat.postMessage", obj{"channel": "C0001", "text": "x", "blocks": blocks})
			}
			if r := post(test.legal); r.body["ok"] != true {
				t.Errorf("legal, but refused: %v", r.body)
			}
			r := post(test.not)
			if r.code() != "invalid_blocks" {
				t.Fatalf("illegal, but answered %v", r.body)
			}
			if message := r.text("response_metadata", "messages", "last"); !strings.HasPrefix(message, "[ERROR] ") || !strings.Contains(message, test.pointer) {
				t.Errorf("the reason doesn't point at %s: %q", test.pointer, message)
			}
		})
	}
	b.t = t
}

func modal(extra obj) obj {
	v := obj{"type": "modal", "title": plain("T"), "blocks": arr{obj{"type": "divider"}}}
	for k, w := range extra {
		v[k] = w
	}
	return v
}

func TestViewLimits(t *testing.T) {
	b := newBench(t)
	divider := func(int) any { return obj{"type": "divider"} }
	for _, test := range []struct {
		name       string
		legal, not obj
		code       string
	}{
		{"title", modal(obj{"title": plain(chars(24))}), modal(obj{"title": plain(chars(25))}), ""},
		{"submit", modal(obj{"submit": plain(chars(24))}), modal(obj{"submit": plain(chars(25))}), ""},
		{"close", modal(obj{"close": plain(chars(24))}), modal(obj{"close": plain(chars(25))}), ""},
		{"blocks", modal(obj{"blocks": many(100, divider)}), modal(obj{"blocks": many(101, divider)}), ""},
		{"private_metadata", modal(obj{"private_metadata": chars(3000)}), modal(obj{"private_metadata": chars(3001)}), ""},
		{"callback_id", modal(obj{"callback_id": chars(255)}), modal(obj{"callback_id": chars(256)}), ""},
		{"no title", modal(nil), obj{"type": "modal", "blocks": arr{obj{"type": "divider"}}}, ""},
		{"an input without submit", modal(obj{"submit": plain("S"), "blocks": arr{input(obj{"type": "plain_text_input"})}}), modal(obj{"blocks": arr{input(obj{"type": "plain_text_input"})}}), ""},
		{"a block for messages only", modal(nil), modal(obj{"blocks": arr{obj{"type": "markdown", "text": "x"}}}), ""},
		{"a home where a modal is wanted", modal(nil), obj{"type": "home", "blocks": arr{}}, ""},
		{"external_id", modal(obj{"external_id": chars(255)}), modal(obj{"external_id": chars(256)}), ""},
		{"files", modal(obj{"submit": plain("S"), "blocks": arr{input(obj{"type": "file_input", "max_files": 10})}}), modal(obj{"submit": plain("S"), "blocks": arr{input(obj{"type": "file_input", "max_files": 11})}}), ""},
		{"size", modal(nil), modal(obj{"blocks": many(90, func(int) any { return obj{"type": "section", "text": plain(strings.Repeat("x", 3000))} })}), "view_too_large"},
	} {
		t.Run(test.name, func(t *testing.T) {
			b.t = t
			tested("view " + test.name)
			open := func(v obj) reply {
				b.srv.mu.Lock()
				trigger := b.srv.newTrigger("U0001", "")
				b.srv.mu.Unlock()
				return b.form("views.open", obj{"trigger_id": trigger, "view": v})
			}
			if r := open(test.legal); r.body["ok"] != true {
				t.Errorf("legal, but refused: %v", r.body)
			}
			code := test.code
			if code == "" {
				code = "invalid_arguments"
			}
			if r := open(test.not); r.code() != code {
				t.Errorf("illegal, but answered %v", r.body)
			}
		})
	}
}

func TestTextLimits(t *testing.T) {
	b := newBench(t)
	post := func(text string) reply { return b.form("chat.postMessage", obj{"channel": "C0001", "text": text}) }
	if r := post(chars(40000)); r.text("message", "text") != chars(40000) {
		t.Error("40,000 characters were cut")
	}
	if r := post(chars(40001)); r.text("message", "text") != chars(40000) {
		t.Error("40,001 characters were not cut to 40,000")
	}
	ts := post("x").text("ts")
	update := func(text string) reply { return b.form("chat.update", obj{"channel": "C0001", "ts": ts, "text": text}) }
	if r := update(chars(4000)); r.body["ok"] != true {
		t.Errorf("an update of 4,000 characters: %v", r.body)
	}
	if r := update(chars(4001)); r.code() != "msg_too_long" {
		t.Errorf("an update of 4,001 characters: %v", r.body)
	}
	sections := func(n int) arr {
		return append(many(4, func(int) any { return obj{"type": "section", "text": plain(chars(2999))} }), obj{"type": "section", "text": plain(chars(n))})
	}
	if r := b.form("chat.postMessage", obj{"channel": "C0001", "blocks": sections(4)}); r.body["ok"] != true {
		t.Errorf("12,000 characters in all blocks: %v", r.body)
	}
	if r := b.form("chat.postMessage", obj{"channel": "C0001", "blocks": sections(5)}); r.code() != "msg_blocks_too_long" {
		t.Errorf("12,001 characters in all blocks: %v", r.body)
	}
	attachment := func(int) any { return obj{"text": "x"} }
	if r := b.form("chat.postMessage", obj{"channel": "C0001", "attachments": many(100, attachment)}); r.body["ok"] != true {
		t.Errorf("100 attachments: %v", r.body)
	}
	if r := b.form("chat.postMessage", obj{"channel": "C0001", "attachments": many(101, attachment)}); r.code() != "too_many_attachments" {
		t.Errorf("101 attachments: %v", r.body)
	}
}
