package demomodel

import (
	"strconv"
	"strings"
)

// request is a clause with its extracted details.
type request struct {
	kind string
	mood mood
	text string // the text of the clause

	orders  []string
	users   []string
	emails  []string
	name    string
	pick    pick
	pronoun bool

	money   *money
	share   *fraction
	percent int
	reason  string

	address string
	profile []field

	subject string
	body    string

	method   string
	sections []string
	filter   string // state of the orders that are looked for
	newest   int    // number of the newest orders that are looked for

	verbatim string // the arguments of a call that the person wrote out
	tool     string // the tool of a call that the person wrote out
	lacks    lack   // the detail that was asked for
}

// field is one property of a profile and its new value.
type field struct{ name, value string }

// lack is a detail that a request needs and does not have.
type lack string

// The details that the demo model asks for.
const (
	nothing     lack = ""
	lackOrder   lack = "order"
	lackWhich   lack = "which order"
	lackAmount  lack = "amount"
	lackPercent lack = "percent"
	lackAddress lack = "address"
	lackAccount lack = "account"
	lackField   lack = "profile field"
	lackTo      lack = "recipient"
	lackBody    lack = "e-mail text"
	lackSearch  lack = "what to look for"
)

var (
	pronouns   = re(`\b(?:it|that|this|them|those|these|the (?:order|parcel|package|delivery)|(?:this|that|same|both) orders?|her|his|their|him|the (?:same )?(?:customer|account|user|client)|(?:this|that) (?:customer|account|user))\b`)
	byInvoice  = re(`\binvoice\b`)
	byTransfer = re(`\b(?:bank )?transfer\b|\bwire\b`)
	halfPrice  = re(`\bhalf price\b`)
	byCard     = re(`\bcard\b`)
)

// withoutAddress matches "to" at the end of a text from which the address was removed.
var withoutAddress = re(`\bto\s*$`)

// newRequest extracts the details of a clause.
func newRequest(c clause) request {
	w := request{kind: c.kind, mood: c.mood, text: c.text}
	text := unmarked(c.text)
	if c.kind == sendEmail {
		text = w.readEmail(c.text)
		if question.MatchString(c.text) && !strings.Contains(c.text, `"`) {
			w.body = strings.TrimSuffix(w.body, "?") // in "can you tell her that …?", the question mark is not part of the message
			w.body = sentenceOf(w.body)
		}
	}
	names := text
	if c.kind == setAddress {
		if w.address = findAddress(text); w.address != "" {
			names = withoutAddress.ReplaceAllString(strings.Replace(text, w.address, " ", 1), "")
		}
	}
	w.readNames(names)
	if c.kind == updateProfile {
		w.readProfile(text)
	}
	// The text before the clause names the order, as in "ORD-123 arrived broken. Refund it."
	if len(w.orders)+len(w.users)+len(w.emails) == 0 && c.before != "" {
		before := unmarked(c.before)
		w.orders, w.users, w.emails = findOrders(before), findUsers(before), findEmails(before)
		if w.name == "" {
			w.name = findName(before)
		}
	}
	switch c.kind {
	case issueRefund:
		w.readAmount(text)
		w.reason = findReason(text, c.before)
	case takePayment:
		w.readAmount(text)
		w.method = findMethod(text)
	case applyDiscount:
		w.readPercent(text)
		w.reason = findReason(text, c.before)
	case cancelAccount, deleteAccount:
		w.reason = findReason(text, c.before)
	case exportData:
		w.sections = findSections(text)
	case searchOrders:
		w.readSearch(text)
	}
	return w
}

func (w *request) readNames(text string) {
	w.orders, w.users, w.emails = findOrders(text), findUsers(text), findEmails(text)
	if len(w.users)+len(w.emails) == 0 {
		w.name = findName(text)
	}
	w.pick = findPick(text)
	w.pronoun = pronouns.MatchString(text)
}

func (w *request) readAmount(text string) {
	head := withoutReason(withoutNames(text))
	w.share = findFraction(head)
	if w.share == nil {
		w.money = findMoney(head, true)
	}
}

func (w *request) readPercent(text string) {
	if m := percentage.FindStringSubmatch(text); m != nil {
		w.percent, _ = strconv.Atoi(m[1])
		return
	}
	if halfPrice.MatchString(text) {
		w.percent = 50
	}
	w.money = findMoney(withoutReason(withoutNames(text)), false)
}

func findMethod(text string) string {
	switch {
	case byInvoice.MatchString(text):
		return "invoice"
	case byTransfer.MatchString(text):
		return "bank_transfer"
	case byCard.MatchString(text):
		return "card_on_file"
	}
	return ""
}

var sectionWords = []struct {
	words *pattern
	name  string
}{
	{re(`\bprofile\b`), "profile"}, {re(`\borders?\b`), "orders"}, {re(`\bpayments?\b`), "payments"}, {re(`\be-?mails\b|\bcorrespondence\b`), "emails"},
}

func findSections(text string) []string {
	var list []string
	for _, s := range sectionWords {
		if s.words.MatchString(withoutNames(text)) {
			list = append(list, s.name)
		}
	}
	return list
}

var (
	states = []struct {
		words *pattern
		state string
	}{
		{re(`\b(?:open|processing|pending|not shipped|unshipped)\b`), "processing"},
		{re(`\b(?:shipped|in transit|on (?:the|their|its) way)\b`), "shipped"},
		{re(`\b(?:delivered|arrived)\b`), "delivered"},
		{re(`\bcancell?ed\b`), "cancelled"},
		{re(`\b(?:unpaid|not (?:been )?paid|overdue|outstanding)\b`), unpaid},
	}
	newestOrders = re(`\b(?:latest|newest|recent|most recent|last)\b(?: (\d{1,2}))?`)
	plural       = re(`\borders\b`)
)

// unpaid is a filter that the shop's search does not have. The model applies this filter to the results itself.
const unpaid = "unpaid"

func (w *request) readSearch(text string) {
	if !plural.MatchString(text) || len(w.orders) > 0 {
		return
	}
	for _, s := range states {
		if s.words.MatchString(text) {
			w.filter = s.state
			break
		}
	}
	if m := newestOrders.FindStringSubmatch(text); m != nil {
		w.newest = 5
		if n, err := strconv.Atoi(m[1]); err == nil && n > 0 {
			w.newest = min(n, 20)
		}
	}
	w.pick = pick{}
}
