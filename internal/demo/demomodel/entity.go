package demomodel

import (
	"slices"
	"strings"
)

var (
	orderID     = lazily(`(?i)\bORD[-_ #]{0,2}(\d{1,9})\b`)
	orderNumber = lazily(`(?i)\border (?:number |no\.? ?|nr\.? ?|id )?#?(\d{1,9})\b|(?:^|\s)#(\d{2,9})\b`)
	userID      = lazily(`(?i)\b(?:USR|USER|U|ACC|ACCT|CUS|CUST)-[a-z0-9]{1,12}\b`)
	userNumber  = lazily(`(?i)\b(?:account|user|customer) (?:number |no\.? ?|id )?#?(\d{1,9})\b`)
	emailInText = lazily(`[\p{L}\p{N}_.+%-]+@[\p{L}\p{N}-]+(?:\.[\p{L}\p{N}-]+)+`)
)

func unique(list []string) []string {
	var kept []string
	for _, s := range list {
		if !slices.Contains(kept, s) {
			kept = append(kept, s)
		}
	}
	return kept
}

func findOrders(text string) []string {
	type at struct {
		place int
		id    string
	}
	var found []at
	for _, m := range orderID.FindAllStringSubmatchIndex(text, -1) {
		found = append(found, at{m[0], "ORD-" + text[m[2]:m[3]]})
	}
	for _, m := range orderNumber.FindAllStringSubmatchIndex(text, -1) {
		g := 2
		if m[g] < 0 {
			g = 4
		}
		found = append(found, at{m[0], "ORD-" + text[m[g]:m[g+1]]})
	}
	slices.SortStableFunc(found, func(a, b at) int { return a.place - b.place })
	ids := make([]string, len(found))
	for i, f := range found {
		ids[i] = f.id
	}
	return unique(ids)
}

func findUsers(text string) []string {
	var ids []string
	for _, id := range userID.FindAllString(text, -1) {
		ids = append(ids, strings.ToUpper(id))
	}
	for _, m := range userNumber.FindAllStringSubmatch(text, -1) {
		ids = append(ids, "USR-"+m[1])
	}
	return unique(ids)
}

func findEmails(text string) []string {
	return unique(emailInText.FindAllString(text, -1))
}

// withoutNames replaces order numbers, account numbers and e-mail addresses by blanks, because their digits are not
// amounts.
func withoutNames(text string) string {
	for _, r := range []*pattern{orderID, orderNumber, userID, userNumber, emailInText} {
		text = r.ReplaceAllString(text, " ")
	}
	return text
}

const (
	properWord = `\p{Lu}[\p{L}'-]*\p{L}`
	properName = `(` + properWord + `(?: ` + properWord + `){0,2})`
)

var (
	possessive = lazily(`(\p{L}[\p{L}-]+(?: \p{Lu}[\p{L}-]+)?)'(?:s\b|\s)`)
	nameAfter  = lazily(`\b(?:[Cc]ustomer(?: named| called)?|[Oo]rders? (?:of|from|by|for|belonging to)|(?:[Aa]ccount|[Pp]rofile|[Dd]ata|[Pp]hone(?: number)?|[Nn]ame|[Ee]-?mail|[Ll]anguage) (?:of|for)|[Ff]or|[Ff]rom|[Tt]o|[Ee]-?mail|[Tt]ell|[Nn]otify|[Ii]nform|[Ll]et|[Ww]rite|[Cc]harge|[Bb]ill|[Rr]efund|[Rr]eimburse|[Cc]ompensate|[Oo]ffer|[Dd]eactivate|[Cc]ancel|[Cc]lose|[Dd]elete|[Gg]ive|[Dd]id|[Dd]oes|[Hh]as|[Ii]s|[Aa]bout|[Oo]n|[Ww]ith) (?:the customer |customer )?` + properName)
)

// nameFirst matches a statement that begins with a customer's name: "Jane wants her account closed".
var nameFirst = lazily(`(?:^|[.!?,:;]\s+|\b[Cc]ustomer )` + properName + ` (?:wants?|would|asks?|asked|says?|said|called|calls|wrote|needs?|complains?|complained|requests?|requested|reports?|reported|has|is|was|got|received|moved|lives|never|never got|does|did)\b`)

// notNames lists words that can stand in the position of a name, but are not names.
var notNames = wordSet(`it that what where who there here he she let how when i you we they this order orders customer customers account user today yesterday
	tomorrow client person company parcel package usd eur gbp english german french spanish monday tuesday wednesday thursday friday saturday sunday find show
	list search look refund cancel delete send please can could the a an ord usr my your our her his their its everyone everybody one someone somebody
	me us update change set deactivate close export charge email tell give check track apply hi hello hey thanks and or for from to of`)

func wordSet(words string) map[string]bool {
	set := map[string]bool{}
	for _, w := range strings.Fields(words) {
		set[w] = true
	}
	return set
}

// findName returns a customer's full or partial name. If there is no name, findName returns an empty text.
func findName(text string) string {
	for _, m := range possessive.FindAllStringSubmatch(text, -1) {
		if name := trimName(m[1]); name != "" {
			return name
		}
	}
	for _, m := range nameFirst.FindAllStringSubmatch(text, -1) {
		if name := trimName(m[1]); name != "" {
			return name
		}
	}
	for _, m := range nameAfter.FindAllStringSubmatch(text, -1) {
		if name := trimName(m[1]); name != "" {
			return name
		}
	}
	return ""
}

// trimName drops words at either end that do not belong to a name.
func trimName(name string) string {
	words := strings.Fields(strings.TrimSuffix(name, "'s"))
	for len(words) > 0 && (notNames[strings.ToLower(words[0])] || len(words) > 1 && commands.MatchString(words[0])) {
		words = words[1:]
	}
	for len(words) > 0 && notNames[strings.ToLower(words[len(words)-1])] {
		words = words[:len(words)-1]
	}
	return strings.Join(words, " ")
}
