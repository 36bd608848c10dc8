package workspace

import (
	"fmt"
	"testing"
)

// Limits of elements and of further blocks.
func TestFurtherBlockLimits(t *testing.T) {
	b := newBench(t)
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
