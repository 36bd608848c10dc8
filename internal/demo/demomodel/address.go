package demomodel

import "strings"

var (
	addressAfter = []*pattern{
		re(`\b(?:should be|has changed to|is now)[:\s]+`),
		re(`\baddress\b[^:]{0,40}:\s*`),
		re(`\b(?:to|with|use|as)\b[:\s]+`),
	}
	addressIntro = re(`^(?:(?:the|her|his|their|this|a|my|our)\s+)?(?:(?:new|following|correct|right|other|shipping|delivery|home|work)\s+)*address(?:\s+(?:is|at|of))?[:,]?\s*`)
	addressTail  = re(`[,\s]*(?:\b(?:for|on|of)\s+(?:the\s+)?(?:order\s+)?(?:ORD-?\d+|#?\d{2,9}|it|that|this|order)|\(?\bORD-?\d+\)?)\s*$`)
	addressEnd   = re(`[,\s]+(?:because|since|as (?:she|he|they|the)|instead|please|thanks|thank you|asap|right away|from now on|too|as well)\b.*$`)
	addressHead  = re(`^(?:to\s+)?(?:order\s+)?(?:ORD-?\d+|it|that)\s*[:,]?\s*(?:to\s+)?|^to\s+`)
	houseNumber  = lazily(`\d`)
)

// findAddress returns the address in a clause, or "".
func findAddress(text string) string {
	for _, after := range addressAfter {
		for _, at := range after.FindAllStringIndex(text, -1) {
			rest := text[at[1]:]
			if address := tidyAddress(rest); plausible(address) && !commands.MatchString(rest) {
				return address
			}
		}
	}
	return ""
}

func tidyAddress(text string) string {
	text = strings.TrimSpace(text)
	text = addressHead.ReplaceAllString(text, "")
	text = addressIntro.ReplaceAllString(text, "")
	text = addressEnd.ReplaceAllString(text, "")
	text = addressTail.ReplaceAllString(text, "")
	lines := strings.FieldsFunc(text, func(r rune) bool { return r == '\n' })
	for i := range lines {
		lines[i] = strings.Trim(lines[i], " ,")
	}
	return strings.Trim(strings.Join(lines, ", "), " \t\"',;:.!?")
}

// The function "plausible" reports whether a text can be an address. An address has a house number, or a comma between
// street and town. A phrase such as "her new place" has neither.
func plausible(address string) bool {
	if len(findOrders(address)) > 0 && len(strings.Fields(address)) == 1 || len(findEmails(address)) > 0 {
		return false
	}
	return len(address) >= 5 && (houseNumber.MatchString(address) || strings.Contains(address, ",")) && len(strings.Fields(address)) > 1
}
