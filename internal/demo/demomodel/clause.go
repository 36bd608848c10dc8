package demomodel

import "strings"

// clause is the part of a message that expresses one request.
type clause struct {
	kind    string // see intent.go
	mood    mood
	text    string
	before  string // the text before the first clause, if it requests nothing
	leading string // the separator between the previous clause and this one
}

var (
	separators = lazily(`(?i)[.!?;]+\s+|\n+|,?\s+(?:and|then|also|plus|but|&)\s+|,\s+`)
	sentence   = lazily(`^[.!?;\n]`)
	fillers    = lazily(`(?i)^(?:(?:and|then|also|please|pls|finally|afterwards|after that|next|kindly|now|ok|okay|yes|no|so|well|hi|hello|hey|thanks|maybe|do you know|can you tell me|could you tell me|tell me|let me know|i wonder|i'd like to know|i would like to know|i want to know|can you|could you|would you|will you|can we|could we|can i|could i|may i|i want you to|i would like (?:you )?to|i'd like (?:you )?to|i want to|i need (?:you )?to|i have to|we need to|we have to|you should|you have to|let's|lets|go ahead and|but|just|why don't you|can't you|is it possible to|would it be possible to|are you able to|how about|what about)[\s,:!]+)+`)
	commands   = lazily(`(?i)^(?:(?:don't|do not|never|stop)\s+)?(?:find|look|lookup|search|show|list|check|get|pull|track|display|refund|refunding|reimburse|give|giving|return|issue|process|charge|bill|collect|take|ship|send|deliver|redirect|reroute|change|update|set|correct|fix|cancel|close|terminate|delete|erase|remove|wipe|deactivate|deactivating|suspend|reactivate|activate|apply|offer|grant|knock|email|e-mail|mail|write|notify|tell|let|inform|export|download|hand over|where|what's|what is|has|is|when|who)\b`)
	absorbing  = lazily(`(?i)^,?\s*(?:and\s+)?(?:then|also|after that|afterwards|finally)\b`)
)

// The function "clauses" splits a message into clauses. Text without a request belongs to the preceding clause.
// Examples are a reason, or the rest of an address or e-mail.
func clauses(text string) []clause {
	var list []clause
	before := ""
	start := 0
	add := func(end int, separator string) {
		segment := text[start:end]
		kind, m := intent(segment)
		n := len(list)
		if kind == "" && n > 0 && continues(list[n-1], segment) {
			kind, m = list[n-1].kind, list[n-1].mood
		}
		switch {
		case kind == "" && n == 0:
			before = strings.TrimSpace(before + " " + segment)
		case n > 0 && (kind == "" || absorbs(list[n-1], separator, segment)):
			list[n-1].text += separator + segment
		default:
			list = append(list, clause{kind: kind, mood: m, text: segment, before: before, leading: separator})
		}
	}
	last := "" // the separator before the segment that begins at start
	for _, at := range separators.FindAllStringIndex(text, -1) {
		if at[0] < start {
			continue
		}
		separator := text[at[0]:at[1]]
		rest := text[at[1]:]
		if !sentence.MatchString(separator) && !commands.MatchString(fillers.ReplaceAllString(rest, "")) && !nextOne.MatchString(rest) {
			continue
		}
		if !sentence.MatchString(separator) && quoteOpen(text[:at[0]]) {
			continue
		}
		add(at[0]+len(endMarks.FindString(separator)), last)
		start, last = at[1], separator
		if end := len(endMarks.FindString(separator)); end > 0 {
			last = separator[end:]
		}
	}
	add(len(text), last)
	if len(list) == 0 {
		return []clause{{text: text}}
	}
	return list
}

// nextOne matches the start of a text that continues the previous clause. Examples are the texts after "and" in "refund
// $5 of ORD-123 and $7 of ORD-131" and in "ship ORD-123 to … and ORD-133 to …".
var nextOne = lazily(`(?i)^(?:[$€£]\s?\d|\d+(?:\.\d+)? ?(?:%|percent|usd|eur|gbp|euros?|dollars?|bucks|pounds?|[€£])|half of|(?:order )?(?:ORD-?\d+|#\d{2,9}) to )`)

func continues(c clause, segment string) bool {
	if !nextOne.MatchString(segment) || len(findOrders(c.text)) == 0 || len(findOrders(segment)) == 0 {
		return false
	}
	return c.kind == issueRefund || c.kind == takePayment || c.kind == applyDiscount || c.kind == setAddress
}

var endMarks = lazily(`^[.!?;]+`)

func quoteOpen(text string) bool { return strings.Count(text, `"`)%2 == 1 }

// absorbs reports whether a segment belongs to an e-mail's text, although the segment alone would be a request. An
// example is "send a new one" in "saying that we are sorry and send a new one".
func absorbs(c clause, separator, segment string) bool {
	if c.kind != sendEmail || !bodyBegins.MatchString(c.text) {
		return false
	}
	if quoteOpen(c.text) {
		return true
	}
	if strings.HasSuffix(strings.TrimSpace(c.text), `"`) || absorbing.MatchString(separator+segment) {
		return false
	}
	named := len(findOrders(segment))+len(findUsers(segment)) > 0
	return !named
}
