package workspace

import (
	"fmt"
	"testing"
)

// Limits of elements, and of the blocks that came later.
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
	card := func(extra obj) arr {
		c := obj{"type": "card", "title": mrkdwn("t")}
		for k, v := range extra {
			c[k] = v
		}
		return arr{c}
	}
	carousel := func(n int) arr {
		return arr{obj{"type": "carousel", "elements": many(n, func(int) any { return card(nil)[0] })}}
	}
	container := func(title, children int) arr {
		return arr{obj{"type": "container", "title": plain(chars(title)), "child_blocks": many(children, func(int) any { return obj{"type": "divider"} })}}
	}
	layout := func(label, rows, items int) arr {
		return arr{obj{"type": "layout", "label": chars(label), "rows": many(rows, func(int) any {
			return obj{"items": many(items, func(int) any { return obj{"block": obj{"type": "divider"}} })}
		})}}
	}
	video := func(title, author int) arr {
		return arr{obj{"type": "video", "title": plain(chars(title)), "author_name": chars(author), "alt_text": "a", "video_url": "https://example.com", "thumbnail_url": "https://example.com"}}
	}
	table := func(kind string, rows, columns, text int) arr {
		return arr{obj{"type": kind, "caption": "c", "rows": many(rows, func(int) any {
			return many(columns, func(int) any { return obj{"type": "raw_text", "text": chars(text)} })
		})}}
	}
	plainTable := func(rows, columns, text int) arr {
		out := table("table", rows, columns, text)
		delete(out[0].(obj), "caption")
		return out
	}
	paged := func(size int) arr {
		out := table("data_table", 2, 1, 1)
		out[0].(obj)["page_size"] = size
		return out
	}
	pie := func(title, label, segments int) arr {
		return arr{obj{"type": "data_visualization", "title": chars(title), "chart": obj{"type": "pie", "segments": many(segments, func(int) any { return obj{"label": chars(label), "value": 1} })}}}
	}
	line := func(axis, series, points int) arr {
		name := func(i int) any { return fmt.Sprint(i) }
		return arr{obj{"type": "data_visualization", "title": "t", "chart": obj{"type": "line",
			"axis_config": obj{"x_label": chars(axis), "categories": many(points, name)},
			"series": many(series, func(i int) any {
				return obj{"name": fmt.Sprint(i), "data": many(points, func(i int) any { return obj{"label": fmt.Sprint(i), "value": i} })}
			})}}}
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
		{"card title", card(obj{"title": mrkdwn(chars(150))}), card(obj{"title": mrkdwn(chars(151))}), "/title/text"},
		{"card body", card(obj{"body": mrkdwn(chars(200))}), card(obj{"body": mrkdwn(chars(201))}), "/body/text"},
		{"card actions", card(obj{"actions": many(3, func(i int) any { return button(obj{"action_id": fmt.Sprint(i)}) })}), card(obj{"actions": many(4, func(i int) any { return button(obj{"action_id": fmt.Sprint(i)}) })}), "/actions"},
		{"an empty card", card(nil), arr{obj{"type": "card", "subtitle": mrkdwn("s")}}, "/blocks/0"},
		{"carousel cards", carousel(10), carousel(11), "/elements"},
		{"container title", container(150, 1), container(151, 1), "/title/text"},
		{"container blocks", container(1, 10), container(1, 11), "/child_blocks"},
		{"layout label", layout(150, 1, 1), layout(151, 1, 1), "/label"},
		{"layout rows", layout(1, 5, 1), layout(1, 6, 1), "/rows"},
		{"layout items", layout(1, 1, 3), layout(1, 1, 4), "/items"},
		{"containers in containers", container(1, 1), arr{obj{"type": "container", "title": plain("t"), "child_blocks": arr{obj{"type": "layout", "label": "l", "rows": arr{obj{"items": arr{obj{"block": container(1, 1)[0]}}}}}}}}, "/block/type"},
		{"alert in a message", arr{obj{"type": "divider"}}, arr{obj{"type": "alert", "text": plain("x")}}, "/blocks/0/type"},
		{"file input in a message", arr{input(obj{"type": "plain_text_input"})}, arr{input(obj{"type": "file_input"})}, "/element/type"},
		{"video title", video(200, 1), video(201, 1), "/title/text"},
		{"video author", video(1, 50), video(1, 51), "/author_name"},
		{"table rows", plainTable(100, 1, 1), plainTable(101, 1, 1), "/rows"},
		{"table columns", plainTable(1, 20, 1), plainTable(1, 21, 1), "/rows/0"},
		{"table text", plainTable(5, 1, 2000), plainTable(5, 1, 2001), "/rows"},
		{"data table rows", table("data_table", 201, 1, 1), table("data_table", 202, 1, 1), "/rows"},
		{"data table text", table("data_table", 10, 1, 2000), table("data_table", 10, 1, 2001), "/rows"},
		{"data table page", paged(100), paged(101), "/page_size"},
		{"a heading alone", table("data_table", 2, 1, 1), table("data_table", 1, 1, 1), "/rows"},
		{"chart title", pie(50, 1, 1), pie(51, 1, 1), "/title"},
		{"chart label", pie(1, 20, 1), pie(1, 21, 1), "/label"},
		{"chart segments", pie(1, 1, 12), pie(1, 1, 13), "/segments"},
		{"chart axis", line(50, 1, 2), line(51, 1, 2), "/x_label"},
		{"chart series", line(1, 12, 2), line(1, 13, 2), "/series"},
		{"chart points", line(1, 1, 20), line(1, 1, 21), "/data"},
	})
}
