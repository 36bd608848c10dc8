package demomodel

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

var (
	because      = re(`(?:\b(?:because(?: of)?|since|as it|as the|as they|due to|on account of|given that|seeing that)\b|\b(?:the )?reason(?: is| being)?:?\s|\s[-–—]+\s|: )`)
	becauseKept  = re(`^as (?:it|the|they)\b`)
	complaint    = re(`\b(?:arriv\w+|broke\w*|damag\w+|defect\w*|faulty|late|lost|missing|never|wrong|torn|crack\w+|shatter\w+|scratch\w*|stain\w*|unhappy|disappoint\w+|complain\w*|not (?:work|fit|as|what|come|happy|satisf)\w*|doesn't|didn't|isn't|wasn't|hasn't|too (?:small|big|late|large)|changed (?:her|his|their) mind|duplicate|twice|mistake|goodwill|delay\w*|leak\w+|stopped|moved|moving|no longer|fraud\w*|spam)\b`)
	forSomething = re(`\bfor (?:the |a |an |its |her |his |their |being |arriving |such a )?(?:[a-z]+ ){0,4}[a-z]+`)
	dangling     = re(`(?:\s+(?:of|for|on|with|to|in|at|from|by|the|a))+$`)
	sideClause   = re(`\b(?:which|that|who) .*`)
	asides       = re(`(?:\b(?:please|thanks|thank you|thx|asap|now|today|too|as well|instead|then|ok|okay|cheers)\b[\s,.!]*)+$`)
)

// findReason returns the reason of a request as a sentence, or "".
func findReason(text, before string) string {
	masked := text
	if at := because.FindStringIndex(masked); at != nil {
		start := at[1]
		if becauseKept.MatchString(masked[at[0]:]) {
			start = at[0] + len("as ")
		}
		if reason := tidy(masked[start:]); reason != "" {
			return reason
		}
	}
	// The text after a comma or another separator is the reason if it contains a complaint, such as "it arrived broken"
	// in "refund ORD-123, it arrived broken".
	for _, mark := range []string{", ", ". ", "; ", "! ", "? ", "\n", " ("} {
		if i := strings.Index(text, mark); i >= 0 && complaint.MatchString(text[i:]) {
			if reason := tidy(text[i+len(mark):]); reason != "" && len(findOrders(reason)) == 0 {
				return reason
			}
		}
	}
	for _, at := range forSomething.FindAllStringIndex(withoutNames(text), -1) {
		if said := withoutNames(text)[at[0]:at[1]]; complaint.MatchString(said) {
			return tidy(strings.TrimPrefix(said, "for "))
		}
	}
	if complaint.MatchString(before) {
		return tidy(before)
	}
	if complaint.MatchString(text) {
		if at := sideClause.FindString(text); complaint.MatchString(at) {
			return tidy(at)
		}
	}
	return ""
}

// withoutReason returns the part of a clause before its reason. Amounts are read only from this part.
func withoutReason(text string) string {
	if at := because.FindStringIndex(text); at != nil {
		return text[:at[0]]
	}
	return text
}

// longestReason is the maximum length of a reason in the tools' schemas.
const longestReason = 280

// tidy turns a fragment of a sentence into text for a form. The text begins with a capital letter and has no
// punctuation at its ends.
func tidy(text string) string {
	text = strings.Trim(strings.TrimSpace(text), " \t\n.,;:!?-–—()")
	text = dangling.ReplaceAllString(text, "")
	text = strings.Trim(asides.ReplaceAllString(text, ""), " \t\n.,;:!?-–—()")
	if r := []rune(text); len(r) > longestReason {
		text = string(r[:longestReason-1]) + "…"
	}
	return capital(text)
}

func capital(text string) string {
	r, size := utf8.DecodeRuneInString(text)
	if size == 0 {
		return text
	}
	return string(unicode.ToUpper(r)) + text[size:]
}
