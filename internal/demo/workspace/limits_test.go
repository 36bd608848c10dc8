package workspace

import (
	"encoding/json"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"net/http"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"
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

// Each limit in the table is tried with its largest legal and its smallest illegal value. Each character of the texts
// has two bytes, so the test fails if the workspace measures a limit in bytes.
func TestBlockLimits(t *testing.T) {
	b := newHarness(t)
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

// blockLimit is a limit of blocks: the largest legal case, the smallest illegal case, and the place that Slack's error
// names.
type blockLimit struct {
	name       string
	legal, not arr
	pointer    string
}

func (b *harness) blockLimits(limits []blockLimit) {
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
	b := newHarness(t)
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
				trigger := b.srv.triggers.create("U0001", "")
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
	b := newHarness(t)
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

// The test tries the limits of elements and of the blocks that have elements.
func TestFurtherBlockLimits(t *testing.T) {
	b := newHarness(t)
	optionAt := func(i int) any { return obj{"text": plain("o"), "value": fmt.Sprint(i)} }
	group := func(n int) func(int) any {
		return func(int) any { return obj{"label": plain(chars(n)), "options": arr{option(1)}} }
	}
	image := func(alt, link int) arr {
		return arr{obj{"type": "image", "alt_text": chars(alt), "image_url": "https://" + chars(link-8)}}
	}
	labelled := func(label, hint int) arr {
		return arr{obj{"type": "input", "label": plain(chars(label)), "hint": plain(chars(hint)), "element": obj{"type": "plain_text_input"}}}
	}
	element := func(e obj) arr { return arr{actions(e)} }
	choice := func(text, value, description int) obj {
		return obj{"text": plain(chars(text)), "value": chars(value), "description": plain(chars(description))}
	}
	feedback := func(text, value int) obj {
		side := obj{"text": plain(chars(text)), "value": chars(value)}
		return obj{"type": "feedback_buttons", "positive_button": side, "negative_button": obj{"text": plain("n"), "value": "n"}}
	}
	icons := func(n, people int) arr {
		return arr{obj{"type": "context_actions", "elements": many(n, func(i int) any {
			return obj{"type": "icon_button", "action_id": fmt.Sprint(i), "icon": "trash", "text": plain("x"), "visible_to_user_ids": many(people, func(int) any { return "U0001" })}
		})}}
	}
	table := func(rows, columns, text int) arr {
		return arr{obj{"type": "table", "rows": many(rows, func(int) any {
			return many(columns, func(int) any { return obj{"type": "raw_text", "text": chars(text)} })
		})}}
	}
	b.blockLimits([]blockLimit{
		{"image alt text", image(2000, 20), image(2001, 20), "/alt_text"},
		{"image url", image(1, 3000), image(1, 3001), "/image_url"},
		{"label", labelled(2000, 1), labelled(2001, 1), "/label/text"},
		{"hint", labelled(1, 2000), labelled(1, 2001), "/hint/text"},
		{"placeholder", element(obj{"type": "users_select", "placeholder": plain(chars(150))}), element(obj{"type": "users_select", "placeholder": plain(chars(151))}), "/placeholder/text"},
		{"option value", element(selects(arr{choice(1, 150, 1)})), element(selects(arr{choice(1, 151, 1)})), "/options/0/value"},
		{"option description", element(selects(arr{choice(1, 1, 75)})), element(selects(arr{choice(1, 1, 76)})), "/options/0/description/text"},
		{"option groups", element(obj{"type": "static_select", "option_groups": many(100, group(1))}), element(obj{"type": "static_select", "option_groups": many(101, group(1))}), "/option_groups"},
		{"option group label", element(obj{"type": "static_select", "option_groups": many(1, group(75))}), element(obj{"type": "static_select", "option_groups": many(1, group(76))}), "/option_groups/0/label/text"},
		{"overflow options", element(obj{"type": "overflow", "options": many(5, optionAt)}), element(obj{"type": "overflow", "options": many(6, optionAt)}), "/options"},
		{"checkboxes", element(obj{"type": "checkboxes", "options": many(10, optionAt)}), element(obj{"type": "checkboxes", "options": many(11, optionAt)}), "/options"},
		{"radio buttons", element(obj{"type": "radio_buttons", "options": many(10, optionAt)}), element(obj{"type": "radio_buttons", "options": many(11, optionAt)}), "/options"},
		{"accessibility label", element(button(obj{"accessibility_label": chars(75)})), element(button(obj{"accessibility_label": chars(76)})), "/accessibility_label"},
		{"feedback text", arr{obj{"type": "context_actions", "elements": arr{feedback(75, 1)}}}, arr{obj{"type": "context_actions", "elements": arr{feedback(76, 1)}}}, "/positive_button/text"},
		{"feedback value", arr{obj{"type": "context_actions", "elements": arr{feedback(1, 2000)}}}, arr{obj{"type": "context_actions", "elements": arr{feedback(1, 2001)}}}, "/positive_button/value"},
		{"context actions", icons(5, 1), icons(6, 1), "/elements"},
		{"people who see an element", icons(1, 10), icons(1, 11), "/visible_to_user_ids"},
		{"header level", arr{obj{"type": "header", "text": plain("x"), "level": 4}}, arr{obj{"type": "header", "text": plain("x"), "level": 5}}, "/level"},
		{"alert in a message", arr{obj{"type": "divider"}}, arr{obj{"type": "alert", "text": plain("x")}}, "/blocks/0/type"},
		{"file in a message", arr{obj{"type": "divider"}}, arr{obj{"type": "file", "external_id": "x", "source": "remote"}}, "/blocks/0/type"},
		{"card in a message", arr{obj{"type": "card", "title": mrkdwn("t"), "block_id": "a"}}, arr{obj{"type": "card", "block_id": "a"}, obj{"type": "card", "block_id": "a"}}, "/blocks/1/block_id"},
		{"file input in a message", arr{input(obj{"type": "plain_text_input"})}, arr{input(obj{"type": "file_input"})}, "/element/type"},
		{"table rows", table(100, 1, 1), table(101, 1, 1), "/rows"},
		{"table columns", table(1, 20, 1), table(1, 21, 1), "/rows/0"},
		{"table text", table(5, 1, 2000), table(5, 1, 2001), "/rows"},
	})
}

// For each limit of calls, the largest legal case succeeds, and the smallest illegal case gets Slack's error code.
func TestCallLimits(t *testing.T) {
	b := newHarness(t)
	b.srv.app.Scopes = nil
	root := b.say("sam", "#support", "hello", "")
	stream := func(n int, blocks int) obj {
		return obj{"channel": "C0001", "thread_ts": root, "recipient_user_id": "U0100", "recipient_team_id": "T0001", "markdown_text": chars(n),
			"chunks": arr{obj{"type": "blocks", "blocks": many(min(blocks, 50), func(int) any { return obj{"type": "divider"} })}, obj{"type": "blocks", "blocks": many(max(blocks-50, 0), func(int) any { return obj{"type": "divider"} })}}}
	}
	metadata := func(bytes int) obj {
		bare, _ := json.Marshal(obj{"event_type": "e", "event_payload": obj{"k": ""}})
		return obj{"channel": "C0001", "text": "x", "metadata": obj{"event_type": "e", "event_payload": obj{"k": strings.Repeat("x", bytes-len(bare))}}}
	}
	home := func(n int) obj {
		return obj{"user_id": "U0001", "view": obj{"type": "home", "blocks": many(n, func(int) any { return obj{"type": "divider"} })}}
	}
	var crowd []string
	b.srv.mu.Lock()
	for i := range 51 {
		u := newUser(SeedPerson{ID: fmt.Sprintf("UC%03d", i), Name: fmt.Sprintf("crowd%d", i)}, "T0001", b.clock.Now())
		b.srv.accounts.add(u)
		crowd = append(crowd, u.ID)
	}
	b.srv.mu.Unlock()
	for _, test := range []struct {
		name, method string
		legal, not   obj
		code         string
	}{
		{"stream text", "chat.startStream", stream(12000, 0), stream(12001, 0), "msg_blocks_too_long"},
		{"stream blocks", "chat.startStream", stream(1, 50), stream(1, 51), "msg_blocks_too_many"},
		{"metadata", "chat.postMessage", metadata(16 * 1024), metadata(16*1024 + 1), "metadata_too_large"},
		{"markdown_text", "chat.postMessage", obj{"channel": "C0001", "markdown_text": chars(12000)}, obj{"channel": "C0001", "markdown_text": chars(12001)}, "msg_blocks_too_long"},
		{"ephemeral text", "chat.postEphemeral", obj{"channel": "C0001", "user": "U0001", "text": chars(40000)}, obj{"channel": "C0001", "user": "U0001", "text": chars(40001)}, "msg_too_long"},
		{"home blocks", "views.publish", home(100), home(101), "invalid_arguments"},
		{"prompts", "assistant.threads.setSuggestedPrompts", obj{"channel_id": "C0001", "thread_ts": root, "prompts": many(4, func(int) any { return obj{"title": "t", "message": "m"} })},
			obj{"channel_id": "C0001", "thread_ts": root, "prompts": many(5, func(int) any { return obj{"title": "t", "message": "m"} })}, "invalid_arguments"},
		{"loading messages", "assistant.threads.setStatus", obj{"channel_id": "C0001", "thread_ts": root, "status": "s", "loading_messages": many(10, func(int) any { return "m" })},
			obj{"channel_id": "C0001", "thread_ts": root, "status": "s", "loading_messages": many(11, func(int) any { return "m" })}, "invalid_arguments"},
		{"quiet people", "dnd.teamInfo", obj{"users": strings.Join(crowd[:50], ",")}, obj{"users": strings.Join(crowd, ",")}, "too_many_users"},
		{"group people", "conversations.open", obj{"users": strings.Join(crowd[:8], ",")}, obj{"users": strings.Join(crowd[:9], ",")}, "too_many_users"},
		{"file size", "files.getUploadURLExternal", obj{"filename": "a", "length": fmt.Sprint(maxUpload)}, obj{"filename": "a", "length": fmt.Sprint(maxUpload + 1)}, "file_upload_size_restricted"},
	} {
		t.Run(test.name, func(t *testing.T) {
			b.t = t
			tested(test.name)
			if r := b.form(test.method, test.legal); r.body["ok"] != true {
				t.Errorf("legal, but refused: %v", r.body)
			}
			if r := b.form(test.method, test.not); r.code() != test.code {
				t.Errorf("illegal, but answered %.200v", r.body)
			}
		})
	}
	t.Run("reactions", func(t *testing.T) {
		b.t = t
		tested("reactions")
		for i := range 24 {
			r := b.form("reactions.add", obj{"channel": "C0001", "timestamp": root, "name": fmt.Sprintf("emoji%d", i)})
			if want := map[bool]string{true: "too_many_emoji"}[i == 23]; r.code() != want {
				t.Errorf("emoji %d: %v", i+1, r.body)
			}
		}
	})
}

// The app can't post in an archived channel, and can't change its messages there.
func TestArchivedChannelsTakeNothing(t *testing.T) {
	b := newHarness(t)
	ts := b.must(b.form("chat.postMessage", obj{"channel": "C0001", "text": "x"})).text("ts")
	b.must(b.post("/people/ingrid/archive", obj{"channel": "C0001"}))
	if r := b.form("chat.postMessage", obj{"channel": "C0001", "text": "y"}); r.code() != "is_archived" {
		t.Errorf("a post: %v", r.body)
	}
	if r := b.form("chat.update", obj{"channel": "C0001", "ts": ts, "text": "y"}); r.code() != "is_inactive" {
		t.Errorf("an update: %v", r.body)
	}
}

// A channel keeps only the newest ephemeral messages.
func TestEphemeralsAreFew(t *testing.T) {
	b := newHarness(t)
	tested("ephemerals")
	for range 501 {
		b.must(b.form("chat.postEphemeral", obj{"channel": "C0001", "user": "U0001", "text": "x"}))
	}
	if n := len(b.messages("ada", "#support", "")); n != 500 {
		t.Errorf("%d ephemerals are kept", n)
	}
}

// Every method, except chat.postMessage and api.test, accepts the number of calls per minute that its tier allows. The
// next call gets status 429 and the number of seconds to wait.
func TestTiers(t *testing.T) {
	b := newHarness(t)
	b.srv.app.Scopes = nil
	b.srv.SetRealRates(true)
	published := map[tier]string{tier2: "20", tier3: "50", tier4: "100", special: "600"}
	for name, m := range b.srv.webAPI.methods {
		limit := int(m.tier)
		if name == "chat.postMessage" || m.open {
			continue // posts are tested by TestRealRates; for api.test, Slack documents no limit
		}
		if published[m.tier] == "" {
			t.Errorf("%s has a tier of %d, which Slack doesn't have", name, m.tier)
		}
		for i := range limit {
			if wait := b.srv.webAPI.rates.wait(name, m.tier, "", b.clock.Now()); wait != 0 {
				t.Fatalf("call %d of %s has to wait %d s", i+1, name, wait)
			}
		}
		b.clock.advance(20 * time.Second)
		resp, err := http.PostForm(b.http.URL+"/api/"+name, map[string][]string{"token": {map[bool]string{true: DemoAppToken, false: DemoBotToken}[m.app]}})
		if err != nil {
			t.Fatal(err)
		}
		if err := resp.Body.Close(); err != nil {
			t.Fatal(err)
		}
		if wait := resp.Header.Get("Retry-After"); resp.StatusCode != http.StatusTooManyRequests || wait != "40" {
			t.Errorf("call %d of %s: status %d, Retry-After %q instead of 429 and 40", limit+1, name, resp.StatusCode, wait)
		}
		b.clock.advance(40 * time.Second)
		if wait := b.srv.webAPI.rates.wait(name, m.tier, "", b.clock.Now()); wait != 0 {
			t.Errorf("%s has to wait %d s a minute later", name, wait)
		}
	}
}

// tried holds the names of the cases that ran.
var tried sync.Map

func tested(name string) { tried.Store(name, true) }

// triedLimits returns the constants for which no case ran. The constants are in three files named limits.go. TestMain
// calls triedLimits after all tests.
func triedLimits() (missing []string, err error) {
	tests := map[string]bool{}
	var constants []string
	files, err := filepath.Glob("*.go")
	if err != nil {
		return nil, err
	}
	for _, name := range append(files, "blockkit/limits.go", "delivery/limits.go") {
		file, err := parser.ParseFile(token.NewFileSet(), name, nil, 0)
		if err != nil {
			return nil, err
		}
		for _, decl := range file.Decls {
			switch d := decl.(type) {
			case *ast.FuncDecl:
				tests[d.Name.Name] = true
			case *ast.GenDecl:
				for _, spec := range d.Specs {
					if value, ok := spec.(*ast.ValueSpec); ok && filepath.Base(name) == "limits.go" {
						constants = append(constants, value.Names[0].Name)
					}
				}
			}
		}
	}
	for _, name := range constants {
		if _, ran := tried.Load(limitCases[name]); !ran && !tests[limitCases[name]] {
			missing = append(missing, name)
		}
	}
	return missing, nil
}

// limitCases names the case that tries each constant. The constants are in three files named limits.go. If the name
// begins with Test, the case is a whole test.
var limitCases = map[string]string{
	"MaxMessageBlocks": "blocks of a message", "maxViewBlocks": "view blocks", "maxSectionText": "section text", "maxSectionFields": "fields", "maxFieldText": "field text",
	"maxHeaderText": "header", "maxContextElements": "context elements", "maxActionElements": "actions elements", "maxButtonText": "button text", "maxButtonValue": "button value",
	"maxURL": "button url", "maxAltText": "image alt text", "maxIdentifier": "action_id", "maxConfirmTitle": "confirm title", "maxConfirmText": "confirm text", "maxConfirmButton": "confirm button",
	"maxModalTitle": "view title", "maxPrivateMetadata": "view private_metadata", "maxInputText": "input text", "maxLabel": "label", "maxPlaceholder": "placeholder", "maxViewStack": "TestTheStackIsThreeHigh",
	"maxViewBytes": "view size", "maxOptions": "options", "maxOptionText": "option text", "maxOptionValue": "option value", "maxOverflowOptions": "overflow options", "maxChoices": "checkboxes",
	"maxFiles": "view files", "maxVisibleTo": "people who see an element", "maxContextActions": "context actions",
	"maxTableRows": "table rows", "maxTableColumns": "table columns", "maxTableText": "table text",
	"MaxMarkdownText": "markdown", "maxBlocksText": "TestTextLimits", "maxPostText": "TestTextLimits", "maxUpdateText": "TestTextLimits",
	"maxAttachments": "TestTextLimits", "maxStreamText": "stream text", "maxMetadataBytes": "metadata", "maxLoading": "loading messages", "maxQuietPeople": "quiet people", "maxGroupPeople": "group people", "maxListedUsers": "TestUserGroups",
	"maxReactions": "reactions", "maxPrompts": "prompts", "maxAckBytes": "TestBigAcknowledgementsAreDropped", "MaxSockets": "TestTenSocketsAndNoMore", "maxEphemerals": "ephemerals",
	"responseURLUses": "TestResponseURLsWorkFiveTimesAndForThirtyMinutes", "responseURLLives": "TestResponseURLsWorkFiveTimesAndForThirtyMinutes",
}
