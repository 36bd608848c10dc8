package demomodel

import "strings"

var (
	bodyBegins = re(`(?:,\s*)?\b(?:saying(?: that)?|that says|which says|to say(?: that)?|and say(?: that)?|say(?:s)? that|telling (?:her|him|them|\S+)(?: that)?|know that|know (?:about|of)\b|(?:e-?mail|message|note|mail|letter|reminder) (?:to \S+ )?that\b|informing (?:her|him|them)(?: that)?|with (?:the )?(?:text|body|message|words)|(?:body|text|message)\s*:|to let (?:her|him|them) know(?: that)?|and (?:tell|let) (?:her|him|them)(?: know)?(?: that)?|reading)\b[:,]?\s*|:\s+`)
	subjectIs  = re(`\b(?:with (?:the |a )?)?(?:subject|titled|title|headed)(?: line)?(?: is)?:?\s+(?:"([^"]+)"|(\S[^,.;"]*?))(?:\s+(?:and|saying|that says|with (?:the )?(?:text|body))\b|[,.;]|$)`)
	quoted     = lazily(`"([^"]+)"`)
	topicIs    = re(`\b(?:about|regarding|concerning|re:?)\s+(.+)$`)
	apologyFor = re(`\b(?:apologi[sz](?:e|ing)|apology|sorry)\b(?:\s+(?:to \S+\s+)?(for .+))?`)
	thatTells  = re(`^(?:tell|notify|inform|e-?mail|mail|message|write(?: to)?)\s+\S.{0,70}?\s+that\s+(.+)$`)
	askingTo   = re(`(?:,| and)? (?:ask|tell|remind|invite) (?:her|him|them|the customer) to (.+)$`)
	question   = re(`^(?:please )?(?:can|could|would|will) (?:you|we)\b`)
	dictating  = re(`^(?:please )?(?:say(?:ing)?(?: that)?|tell (?:him|her|them)(?: that)?|that|write(?: that)?|body:|text:|it should say(?: that)?)\s+`)
	addressed  = []struct {
		words *pattern
		you   string
	}{
		{re(`\b(?:he|she|they) (?:is|are)\b`), "you are"}, {re(`\b(?:he|she|they) (?:has|have)\b`), "you have"}, {re(`\b(?:he|she|they) (?:was|were)\b`), "you were"},
		{re(`\b(?:he|she|they)'s\b`), "you are"}, {re(`\bthey're\b`), "you are"}, {re(`\b(?:he|she|they)\b`), "you"},
		{re(`\b(?:his|her|their|the customer's) (\p{L})`), "your $1"}, {re(`\b(?:him|her)\b`), "you"},
	}
)

// readEmail extracts the subject and the text of an e-mail from a request. readEmail returns the rest of the text,
// which names the recipient.
func (w *request) readEmail(text string) (rest string) {
	rest = text
	if m := subjectIs.FindStringSubmatchIndex(rest); m != nil {
		for _, g := range []int{2, 4} {
			if m[g] >= 0 {
				w.subject = strings.TrimSpace(rest[m[g]:m[g+1]])
				end := m[g+1]
				if end < len(rest) && rest[end] == '"' {
					end++
				}
				rest = rest[:m[0]] + " " + rest[end:]
			}
		}
	}
	if at := bodyBegins.FindStringIndex(rest); at != nil {
		w.body, rest = sentenceOf(rest[at[1]:]), rest[:at[0]]
		return rest
	}
	if m := quoted.FindStringSubmatchIndex(rest); m != nil {
		w.body = rest[m[2]:m[3]]
		return rest[:m[0]] + rest[m[1]:]
	}
	if m := askingTo.FindStringSubmatchIndex(rest); m != nil {
		w.body = sentenceOf("please " + rest[m[2]:m[3]])
		return rest[:m[0]]
	}
	core := fillers.ReplaceAllString(rest, "")
	if m := thatTells.FindStringSubmatchIndex(core); m != nil {
		w.body = sentenceOf(core[m[2]:m[3]])
		return core[:m[2]]
	}
	if m := apologyFor.FindStringSubmatchIndex(rest); m != nil {
		w.body = "We are sorry."
		if m[2] >= 0 {
			w.body = "We are sorry " + strings.TrimRight(strings.TrimSpace(rest[m[2]:m[3]]), " .!") + "."
		}
		return rest[:m[0]]
	}
	if m := topicIs.FindStringSubmatchIndex(rest); m != nil {
		topic := strings.TrimRight(strings.TrimSpace(toReader(rest[m[2]:m[3]])), " .!?")
		w.body = "We are writing to you about " + topic + "."
		if w.subject == "" {
			w.subject = "About " + topic
		}
		return rest
	}
	return rest
}

// sentenceOf converts dictated text to an e-mail's text. Quoted text stays unchanged.
func sentenceOf(text string) string {
	text = strings.TrimSpace(text)
	if m := quoted.FindStringSubmatch(text); m != nil && strings.HasPrefix(text, `"`) {
		return m[1]
	}
	if rest := strings.Trim(asides.ReplaceAllString(text, ""), " \t\n,;:"); rest != "" {
		text = rest // if the whole text is an aside, the aside stays: "thanks" in "saying thanks"
	}
	text = toReader(text)
	if text == "" {
		return ""
	}
	if !strings.ContainsAny(text[len(text)-1:], ".!?") {
		text += "."
	}
	return capital(text)
}

// toReader rewrites a text about a person so that it addresses this person: "his order is late" becomes "your order is
// late".
func toReader(text string) string {
	for _, a := range addressed {
		text = a.words.ReplaceAllString(text, a.you)
	}
	return text
}

// longestSubject is the maximum number of characters of a subject. Mail programs show about this number of characters.
const longestSubject = 60

// subjectOf returns a subject line for an e-mail.
func subjectOf(w *request) string {
	if w.subject != "" {
		return cut(capital(w.subject), longestSubject)
	}
	if len(w.orders) > 0 {
		return "Your order " + w.orders[0]
	}
	if ids := findOrders(w.body); len(ids) > 0 {
		return "Your order " + ids[0]
	}
	first := w.body
	if i := strings.IndexAny(first, ".!?\n"); i > 0 {
		first = first[:i]
	}
	return cut(first, longestSubject)
}

func cut(text string, most int) string {
	r := []rune(strings.TrimSpace(text))
	if len(r) <= most {
		return string(r)
	}
	return strings.TrimSpace(string(r[:most-1])) + "…"
}
