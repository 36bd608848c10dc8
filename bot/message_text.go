package bot

import (
	"regexp"
	"strings"
)

// markup matches Slack's markup.
var markup = regexp.MustCompile(`<([@#!][^<>]*|[a-z]+:[^<>]*)>`)

// readableText converts Slack's markup to plain text. It drops the bot's own mention, turns other mentions into @names
// (resolved by called), keeps the addresses of links, and unescapes the text.
func readableText(text, me string, called func(user string) string) string {
	text = markup.ReplaceAllStringFunc(text, func(token string) string {
		return plainToken(token[1:len(token)-1], me, called)
	})
	return strings.TrimSpace(unescape.Replace(text))
}

var unescape = strings.NewReplacer("&lt;", "<", "&gt;", ">", "&amp;", "&")

func plainToken(token, me string, called func(string) string) string {
	target, label, labelled := strings.Cut(token, "|")
	switch {
	case strings.HasPrefix(target, "@"):
		if target == "@"+me {
			return ""
		}
		if labelled && label != "" {
			return "@" + label
		}
		return "@" + called(target[1:])
	case strings.HasPrefix(target, "#"):
		if labelled && label != "" {
			return "#" + label
		}
		return target
	case strings.HasPrefix(target, "!subteam^"):
		if labelled && label != "" {
			return "@" + strings.TrimPrefix(label, "@")
		}
		return "@" + strings.TrimPrefix(target, "!subteam^")
	case strings.HasPrefix(target, "!date^"):
		return label
	case strings.HasPrefix(target, "!"):
		return "@" + target[1:]
	case strings.HasPrefix(target, "mailto:"), strings.HasPrefix(target, "tel:"):
		_, address, _ := strings.Cut(target, ":")
		return address
	case !labelled || label == target || strings.HasSuffix(target, "://"+label) || strings.HasSuffix(target, "://"+label+"/"):
		return target
	}
	return label + " (" + target + ")"
}

// saysStop reports whether a message only tells the agent to stop.
func saysStop(text string) bool {
	switch strings.ToLower(strings.Trim(text, " .!")) {
	case "stop", "stop it", "stop that", "stop this", "please stop", "stop please", "stop now":
		return true
	}
	return false
}

// startsAnew reports whether a message asks for a new conversation.
func startsAnew(text string) bool {
	switch strings.ToLower(strings.Trim(text, " .!")) {
	case "start over", "new conversation", "start a new conversation", "reset":
		return true
	}
	return false
}
