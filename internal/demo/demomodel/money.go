package demomodel

import (
	"fmt"
	"strconv"
	"strings"
)

// money is an amount in a person's message.
type money struct {
	cents    int
	currency string // empty if the person named no currency
}

var (
	numberWithCents = `\d{1,3}(?:,\d{3})+(?:\.\d{1,2})?|\d{1,7}(?:[.,]\d{1,2})?`
	moneyBefore     = lazily(`(?i)(\$|€|£|\busd|\beur|\bgbp)\s?(` + numberWithCents + `)`)
	moneyAfter      = lazily(`(?i)(?:^|[^\w.,-])(` + numberWithCents + `)\s?(\$|€|£|usd\b|eur\b|gbp\b|euros?\b|dollars?\b|bucks\b|pounds?\b)`)
	withCents       = lazily(`(?i)(?:(\$|€|£)\s?)?(?:(\d{1,6})\s?(dollars?|bucks|euros?|pounds?)?\s*(?:and\s+)?)?\b(\d{1,2})\s?(?:cents|pence)\b`)
	bareAmount      = lazily(`(?:^|[^\w.,#@+-])(` + numberWithCents + `)(?:[^\w%@-]|$)`)
	percentage      = lazily(`(?i)\b(\d{1,3})\s?(?:%|percent\b|per cent\b|pct\b)`)
)

// parseCents reads a plain decimal number as cents. parseCents ignores digits after the second decimal place.
func parseCents(text string) (int, bool) {
	whole, places, _ := strings.Cut(text, ".")
	if whole == "" {
		return 0, false
	}
	if len(places) > 2 {
		places = places[:2]
	}
	n, err := strconv.Atoi(whole + (places + "00")[:2])
	return n, err == nil
}

// The function "spoken" parses a number in the notations that people use. Examples are 1,299.00 and 49,99.
func spoken(text string) int {
	if i := strings.LastIndexByte(text, ','); i >= 0 && len(text)-i-1 <= 2 {
		text = text[:i] + "." + text[i+1:]
	}
	n, _ := parseCents(strings.ReplaceAll(text, ",", ""))
	return n
}

func currencyOf(word string) string {
	switch strings.ToLower(word) {
	case "$", "usd", "dollar", "dollars", "bucks":
		return "USD"
	case "€", "eur", "euro", "euros":
		return "EUR"
	}
	return "GBP"
}

// findMoney returns an amount in the text, or nil. If bare is true, a number without a currency also counts as an
// amount.
func findMoney(text string, bare bool) *money {
	if m := withCents.FindStringSubmatch(text); m != nil {
		whole, places := spoken(m[2]), spoken(m[4])/100
		currency := ""
		if word := m[1] + m[3]; word != "" {
			currency = currencyOf(word)
		}
		return &money{whole + places, currency}
	}
	if m := moneyBefore.FindStringSubmatch(text); m != nil {
		return &money{spoken(m[2]), currencyOf(m[1])}
	}
	if m := moneyAfter.FindStringSubmatch(text); m != nil {
		return &money{spoken(m[1]), currencyOf(m[2])}
	}
	if bare {
		if m := bareAmount.FindStringSubmatch(text); m != nil {
			return &money{cents: spoken(m[1])}
		}
	}
	return nil
}

// fraction is a share of an amount.
type fraction struct{ of, in int }

var shares = []struct {
	words *pattern
	share fraction
}{
	{lazily(`(?i)\b(?:two thirds|2/3)\b`), fraction{2, 3}},
	{lazily(`(?i)\b(?:three quarters|3/4)\b`), fraction{3, 4}},
	{lazily(`(?i)\b(?:half|1/2)\b`), fraction{1, 2}},
	{lazily(`(?i)\b(?:a|one) third\b|\b1/3\b`), fraction{1, 3}},
	{lazily(`(?i)\b(?:a|one) quarter\b|\b1/4\b`), fraction{1, 4}},
}

func findFraction(text string) *fraction {
	if m := percentage.FindStringSubmatch(text); m != nil {
		p, _ := strconv.Atoi(m[1])
		return &fraction{p, 100}
	}
	for _, s := range shares {
		if s.words.MatchString(text) {
			return &s.share
		}
	}
	return nil
}

// share returns the fraction of an amount, with halves rounded up.
func (f fraction) share(cents int) int { return (2*cents*f.of + f.in) / (2 * f.in) }

// show formats an amount for people.
func show(cents int, currency string) string {
	sign := ""
	if cents < 0 {
		sign, cents = "-", -cents
	}
	number := fmt.Sprintf("%d.%02d", cents/100, cents%100)
	switch currency {
	case "USD":
		return sign + "$" + number
	case "EUR":
		return sign + "€" + number
	case "GBP":
		return sign + "£" + number
	}
	return strings.TrimSpace(sign + number + " " + currency)
}

// jsonNumber formats an amount as a JSON number.
func jsonNumber(cents int) string {
	if cents%100 == 0 {
		return strconv.Itoa(cents / 100)
	}
	return fmt.Sprintf("%d.%02d", cents/100, cents%100)
}
