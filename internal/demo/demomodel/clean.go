package demomodel

import "strings"

var (
	slackLink   = lazily(`<(?:mailto:|tel:|https?://)?([^<>|\s]+)(?:\|([^<>]*))?>`)
	mention     = lazily(`<[@!][^<>]*>`)
	channelLink = lazily(`<#[A-Z0-9]+(?:\|([^<>]*))?>`)
	// speaker matches the name of a speaker before the speaker's words: "Sam: hi", "<@U0100>: hi", "Sam Doe (U0100):
	// hi".
	speaker = lazily(`^\s*@?([\p{L}\p{N}][\p{L}\p{N}.'_-]*(?: \p{Lu}[\p{L}.'-]*){0,2})(?: ?[(\[][^)\]]{1,40}[)\]])?:\s+`)
	// atFirst matches a mention that was typed as plain text: "@Countersign refund …".
	atFirst = lazily(`^@[\p{L}\p{N}][\p{L}\p{N}._-]*[,:]?\s+`)
	spaces  = lazily(`[ \t\x{00a0}\x{202f}]+`)
)

// notSpeakers lists words that can stand before a colon, but are not names of speakers.
var notSpeakers = wordSet(`address amount body customer email e-mail message name new note order phone please reason refund ship subject text to update search find
	call run use saying says discount account user status`)

var plain = strings.NewReplacer("’", "'", "‘", "'", "“", `"`, "”", `"`, "„", `"`, "‑", "-", "&lt;", "<", "&gt;", ">", "&amp;", "&")

// longestMessage is the maximum number of bytes that clean reads of a message.
const longestMessage = 8000

// clean converts a message to plain text. The function removes mentions and the names of speakers, and replaces links
// and typographic quotes by plain text.
func clean(text string) string {
	if len(text) > longestMessage {
		text = strings.ToValidUTF8(text[:longestMessage], "")
	}
	text = mention.ReplaceAllString(text, " ")
	text = channelLink.ReplaceAllString(text, "#$1")
	text = slackLink.ReplaceAllStringFunc(text, func(link string) string {
		m := slackLink.FindStringSubmatch(link)
		if m[2] != "" {
			return m[2]
		}
		return m[1]
	})
	text = plain.Replace(text)
	lines := strings.Split(text, "\n")
	for i, line := range lines {
		line = strings.TrimSpace(spaces.ReplaceAllString(line, " "))
		line = strings.TrimLeft(atFirst.ReplaceAllString(line, ""), ",: ")
		if m := speaker.FindStringSubmatch(line); m != nil && !notSpeakers[strings.ToLower(strings.Fields(m[1])[0])] && !orderID.MatchString(m[0]) {
			line = atFirst.ReplaceAllString(line[len(m[0]):], "")
		}
		lines[i] = strings.TrimSpace(line)
	}
	return strings.TrimSpace(strings.Join(lines, "\n"))
}

// The function "unmarked" removes mrkdwn's emphasis. The result is only interpreted, and never shown to people.
func unmarked(text string) string {
	return strings.NewReplacer("*", "", "`", "", "~", "").Replace(text)
}
