package workspace

import (
	"regexp"
	"strings"
)

// Text that a person types reaches apps in Slack's notation. Mentions, channels and links are written as <…>, and & < >
// are escaped everywhere else. In code, & < > are escaped and nothing else changes.

var (
	codeSpan  = regexp.MustCompile("(?s)```.*?```|`[^`\n]+`")
	reference = regexp.MustCompile(`<(?:@[UW][A-Z0-9]+|#[CG][A-Z0-9]+|!(?:here|channel|everyone|subteam\^S[A-Z0-9]+|date\^[^<>]+)|(?:https?|mailto):[^<>|\s]+)(?:\|[^<>]*)?>`)
	// The patterns of a mention, a channel, a link and an address. A match directly after a letter or digit is ignored.
	typedMention = regexp.MustCompile(`@[\p{L}\p{N}._-]+`)
	typedChannel = regexp.MustCompile(`#[\p{L}\p{N}_-]+`)
	typedLink    = regexp.MustCompile(`https?://[^\s<>|]+`)
	typedAddress = regexp.MustCompile(`[A-Za-z0-9._%+-]+@[A-Za-z0-9-]+(?:\.[A-Za-z0-9-]+)+`)
	anyTyped     = regexp.MustCompile(strings.Join([]string{typedLink.String(), typedAddress.String(), typedMention.String(), typedChannel.String()}, "|"))

	escaper = strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;")
)

// notation converts the text that people type to Slack's notation.
type notation struct {
	accounts *accounts
	channels *channels
	groups   *userGroups
}

// The method "typed" converts a text that a person typed to Slack's notation.
func (n *notation) typed(text string) string {
	return between(text, codeSpan, escaper.Replace, func(plain string) string {
		return between(plain, reference, func(ref string) string { return ref }, func(plain string) string {
			return between(plain, anyTyped, n.typedToken, escaper.Replace)
		})
	})
}

// withNames adds names to ids, as Slack does in a command's text with "escape channels, users, and links".
func (n *notation) withNames(text string) string {
	return reference.ReplaceAllStringFunc(text, func(ref string) string {
		id, _, _ := strings.Cut(strings.Trim(ref, "<>"), "|")
		switch {
		case strings.HasPrefix(id, "@") && n.accounts.byID[id[1:]] != nil:
			return "<" + id + "|" + n.accounts.byID[id[1:]].Name + ">"
		case strings.HasPrefix(id, "#") && n.channels.byID[id[1:]] != nil:
			return "<" + id + "|" + n.channels.byID[id[1:]].Name + ">"
		case strings.HasPrefix(id, "!subteam^"):
			if g := n.groups.withID(strings.TrimPrefix(id, "!subteam^")); g != nil {
				return "<" + id + "|@" + g.Handle + ">"
			}
		}
		return ref
	})
}

// The function "between" applies the function match to each match of a pattern, and the function rest to the text
// between the matches.
func between(text string, pattern *regexp.Regexp, match, rest func(string) string) string {
	var out strings.Builder
	at := 0
	for _, span := range pattern.FindAllStringIndex(text, -1) {
		out.WriteString(rest(text[at:span[0]]))
		out.WriteString(match(text[span[0]:span[1]]))
		at = span[1]
	}
	out.WriteString(rest(text[at:]))
	return out.String()
}

// typedToken converts one mention, channel, address or link.
func (n *notation) typedToken(token string) string {
	trimmed := strings.TrimRight(token, ".,;:!?)-_'\"")
	tail := escaper.Replace(token[len(trimmed):])
	switch {
	case strings.HasPrefix(token, "http"):
		return "<" + escaper.Replace(trimmed) + ">" + tail
	case typedAddress.MatchString(trimmed) && !strings.HasPrefix(token, "@"):
		return "<mailto:" + trimmed + "|" + trimmed + ">" + tail
	case strings.HasPrefix(token, "#"):
		if ch := n.channels.named(strings.ToLower(trimmed[1:])); ch != nil {
			return "<#" + ch.ID + "|" + ch.Name + ">" + tail
		}
	case strings.HasPrefix(token, "@"):
		if who := n.mention(trimmed[1:]); who != "" {
			return who + tail
		}
	}
	return escaper.Replace(token)
}

// mention converts @name. The name is a person's name, display name or id, a user group, or one of here, channel and
// everyone. For an unknown name, mention returns "".
func (n *notation) mention(name string) string {
	switch strings.ToLower(name) {
	case "here", "channel", "everyone":
		return "<!" + strings.ToLower(name) + ">"
	}
	for _, id := range n.accounts.ids {
		u := n.accounts.byID[id]
		if strings.EqualFold(u.Name, name) || strings.EqualFold(strings.ReplaceAll(u.shown(), " ", ""), name) || u.ID == name {
			return "<@" + u.ID + ">"
		}
	}
	for _, g := range n.groups.list {
		if strings.EqualFold(g.Handle, name) {
			return "<!subteam^" + g.ID + "|@" + g.Handle + ">"
		}
	}
	return ""
}
