package argument

import (
	"regexp"
	"slices"
	"strings"

	"countersign/approvers"
	"countersign/bot/render/block"
)

// maxTyped is the maximum length of a value that a person must type.
const maxTyped = 40

// TypedValue chooses the value to be typed. It is the most informative value of the call, so that the person reads this
// value. TypedValue prefers, in this order: an amount, the recipient, the subject, a value that the preview shows, and
// any other number or word. If there is no such value, TypedValue chooses the tool's name.
func TypedValue(r approvers.Request) (what, value string) {
	names, values := Members(openArgs(r))
	best := len(telling)
	for _, n := range names {
		v, number := typeable(values[n])
		if v == "" {
			continue
		}
		for rank, tells := range telling[:best] {
			if tells(r, n, v, number) {
				what, value, best = "the value of "+block.Name(n), v, rank
				break
			}
		}
	}
	if value == "" {
		return "the tool's name", r.Tool
	}
	return what, value
}

// The slice "telling" lists tests for kinds of values, the most informative kind first.
var telling = []func(r approvers.Request, member, value string, number bool) bool{
	func(_ approvers.Request, member, value string, _ bool) bool {
		return PlainNumber.MatchString(value) && calledLike(member, "amount", "total", "sum", "price", "cost", "percent", "quantity", "budget", "value")
	},
	func(_ approvers.Request, member, _ string, number bool) bool {
		return !number && calledLike(member, "to", "recipient", "payee", "beneficiary", "account", "iban", "customer", "user", "email", "mail", "phone", "domain", "host")
	},
	func(_ approvers.Request, member, _ string, _ bool) bool {
		return calledLike(member, "id", "number", "order", "invoice", "ref", "reference", "sku", "key", "name", "table", "path")
	},
	func(r approvers.Request, _, value string, _ bool) bool {
		return strings.Contains(r.Preview, value) && len(value) > 1
	},
	func(_ approvers.Request, _, value string, number bool) bool { return number && len(value) > 1 },
	func(_ approvers.Request, _, _ string, number bool) bool { return !number },
}

var nameParts = regexp.MustCompile(`[A-Z]?[a-z]+|[A-Z]+`)

// calledLike reports whether an argument's name contains one of the words.
func calledLike(member string, words ...string) bool {
	return slices.ContainsFunc(nameParts.FindAllString(member, -1), func(part string) bool { return slices.Contains(words, strings.ToLower(part)) })
}

// typeable returns a value that a person can be asked to type. If a value is too long, contains spaces or invisible
// characters, or can be guessed, typeable returns "". The result number reports whether the value is a number.
func typeable(raw []byte) (value string, number bool) {
	v := string(raw)
	if PlainNumber.MatchString(v) {
		return v, true
	}
	if len(v) < 2 || v[0] != '"' || len(v) > maxTyped+2 || strings.ContainsAny(v, " \\") || block.CountHidden(v) > 0 {
		return "", false
	}
	v = v[1 : len(v)-1]
	if guessable.MatchString(v) {
		return "", false
	}
	return v, false
}

// guessable matches words for yes and no, single characters, and codes of currencies and countries.
var guessable = regexp.MustCompile(`^(?i:|.|true|false|yes|no|null|none|nil|n/a|on|off|ok|all|any|default|unknown|test|low|medium|high|[a-z]{2,3})$`)
