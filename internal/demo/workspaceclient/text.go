package workspaceclient

import (
	"bytes"
	"encoding/json"
	"regexp"
	"strings"
)

// shownKeys maps the keys of blocks whose values a person reads to the notation of the value in the text. The sign %
// stands for the value.
var shownKeys = map[string]string{"text": "%", "fallback": "%", "user_id": "<@%>", "usergroup_id": "<!subteam^%>", "channel_id": "<#%>"}

// Text returns the readable text of blocks, in order, without accessories and confirmation dialogs.
func Text(blocks json.RawMessage) string {
	if len(blocks) == 0 {
		return ""
	}
	var out strings.Builder
	d := json.NewDecoder(bytes.NewReader(blocks))
	readText(d, "", &out)
	return strings.TrimSpace(out.String())
}

// readText reads one JSON value. key is the object key under which the value was found.
func readText(d *json.Decoder, key string, out *strings.Builder) {
	token, err := d.Token()
	if err != nil {
		return
	}
	switch t := token.(type) {
	case string:
		if form, shown := shownKeys[key]; shown {
			out.WriteString(strings.Replace(form, "%", t, 1))
		}
	case json.Delim:
		for d.More() {
			if t == '[' {
				readText(d, key, out)
				continue
			}
			name, err := d.Token()
			if err != nil {
				return
			}
			key, _ := name.(string)
			if key == "confirm" || key == "accessory" {
				readText(d, "", &strings.Builder{})
				continue
			}
			readText(d, key, out)
		}
		_, _ = d.Token() // the closing bracket or brace
		if t == '{' && key == "" {
			out.WriteByte('\n') // a block ends
		}
	}
}

var marked = regexp.MustCompile(`<([@#!]?)([^<>|]*)(?:\|([^<>]*))?>`)

// Plain returns a message's text as people see it. Plain replaces mentions, dates and links by their visible text. The
// function "named" returns a person's name.
func Plain(text string, named func(id string) string) string {
	text = marked.ReplaceAllStringFunc(text, func(s string) string {
		m := marked.FindStringSubmatch(s)
		switch {
		case m[1] == "@":
			return named(m[2])
		case m[3] != "":
			return m[3]
		}
		return m[1] + m[2]
	})
	return strings.NewReplacer("&lt;", "<", "&gt;", ">", "&amp;", "&").Replace(text)
}
