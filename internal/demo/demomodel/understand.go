package demomodel

import (
	"slices"
	"strings"
)

var (
	yes       = re(`^(?:yes|yep|yeah|yup|sure|ok|okay|please do|do it|do that|go ahead|go on|sounds good|that works|fine|right|correct|exactly|y|of course|absolutely|agreed|let's do that|make it so)(?:[\s,.!]+(?:please|do it|do that|thanks|thank you|go ahead|then|ok|okay|that's fine|deal|yes|sounds good|that works))*[\s.!]*$`)
	no        = re(`^(?:no|nope|nah|no thanks|no thank you|never mind|nevermind|forget it|forget that|leave it|don't|do not|stop|cancel that|cancel it|drop it|not now|skip it|that's all|nothing)(?:[\s,.!]+(?:thanks|thank you|please|then|it|forget it|never mind|leave it))*[\s.!]*$`)
	tryAgain  = re(`^(?:please )?(?:try (?:it |that )?again|retry|again|once more|ask (?:them |him |her )?again|do it again|request it again|resubmit|send it again)(?: please| now)?[\s.!]*$`)
	optionNo  = re(`^(?:please |then |ok |okay |yes,? |let's )*(?:take |do |go with |try |use |choose )?(?:the )?(?:option |number |no\.? ?)?(first|second|third|1st|2nd|3rd|1|2|3|one|two|three)(?: one| option| alternative| suggestion)?(?:,? please| then)?[\s.!]*$`)
	verbatim  = re(`^(?:please )?(?:call|run|use|invoke|execute)(?: the)?(?: tool| function)? ` + "`?" + `([a-zA-Z0-9_.-]{1,64})` + "`?" + `(?: tool| function)?(?: with(?: (?:the )?arguments?)?)?:?\s*` + "`*(?:json)?" + `\s*(\{[\s\S]*|[a-zA-Z_]\w*\s*[=:][\s\S]*)?$`)
	sameAgain = re(`^(?:(?:and|also|now|then)\s+)*(?:(?:do )?(?:the )?same (?:thing )?(?:for|with|to)|(?:and )?(?:what|how) about)\b|\b(?:too|as well)[\s.!?]*$`)
)

var optionNumbers = map[string]int{"first": 0, "1st": 0, "1": 0, "one": 0, "second": 1, "2nd": 1, "2": 1, "two": 1, "third": 2, "3rd": 2, "3": 2, "three": 2}

// understand returns the requests of the turn's message, or the small talk to answer with.
func (d *responder) understand() (requests []request, talk string) { //nolint:cyclop // one case for each kind of phrase
	said := d.t.said
	if m := verbatim.FindStringSubmatch(said); m != nil && (strings.ContainsAny(m[1], "_.") || d.tools.names[m[1]]) {
		return []request{{kind: "verbatim", tool: m[1], verbatim: strings.TrimRight(m[2], " \n`"), text: said}}, ""
	}
	plainText := unmarked(said)
	if w, ok := d.reaction(plainText); ok {
		return w, ""
	}
	if no.MatchString(plainText) {
		return nil, d.drop()
	}
	if text := talkAbout(plainText); text != "" {
		if text == helpText {
			text += d.others()
		}
		return nil, text
	}
	list := clauses(said)
	if open := d.m.open; open != nil && (list[0].kind == "" || len(list) == 1 && list[0].kind == searchOrders && bare(fillers.ReplaceAllString(plainText, ""))) {
		w := *open
		if w.fill(plainText, said) {
			return []request{w}, ""
		}
	}
	for _, c := range list {
		if c.kind != "" {
			requests = append(requests, newRequest(c))
		}
	}
	if again := d.repeated(plainText, requests); again != nil {
		return again, ""
	}
	if w := d.amended(plainText); w != nil && len(requests) == 0 {
		return []request{*w}, ""
	}
	if len(requests) > 0 {
		return requests, ""
	}
	// A message that only mentions an order asks to look up the order.
	var w request
	if w.readNames(plainText); len(w.orders)+len(w.emails)+len(w.users) > 0 {
		w.kind, w.text, w.pick = searchOrders, plainText, pick{}
		return []request{w}, ""
	}
	// After a list, "The second one?" asks for the details of the second order.
	if p := findPick(plainText); len(d.m.listing) > 0 && (p.way != "" || len(byItem(plainText, d.m.listed())) > 0) {
		return []request{{kind: searchOrders, text: plainText, pick: p}}, ""
	}
	if name := strings.Trim(plainText, " .?!"); d.m.find(name) != nil {
		return []request{{kind: searchOrders, text: plainText, name: name}}, ""
	}
	talk = smallTalk(plainText)
	if talk == notUnderstood {
		talk += d.others()
	}
	return nil, talk
}

// reaction interprets a message as an answer to an offer or a report.
func (d *responder) reaction(text string) ([]request, bool) {
	if tryAgain.MatchString(text) && len(d.m.last) > 0 {
		return []request{{kind: "again", text: text}}, true
	}
	if len(d.m.offers) == 0 {
		return nil, false
	}
	if yes.MatchString(text) {
		return []request{d.m.offers[0].request}, true
	}
	if m := optionNo.FindStringSubmatch(text); m != nil {
		if n := optionNumbers[strings.ToLower(m[1])]; n < len(d.m.offers) {
			return []request{d.m.offers[n].request}, true
		}
	}
	return nil, false
}

func (d *responder) drop() string {
	switch {
	case d.m.open != nil:
		return "All right, I leave that. What else can I do?"
	case len(d.m.offers) > 0:
		return "All right, then everything stays as it is. What else can I do?"
	}
	return "All right. Nothing is under way from my side; tell me when you need something."
}

// The method "repeated" interprets "and ORD-124 too" as the last request, for another order or another customer.
func (d *responder) repeated(text string, requests []request) []request {
	if d.m.wanted == nil || !sameAgain.MatchString(text) {
		return nil
	}
	if len(requests) > 1 || len(requests) == 1 && (requests[0].kind != searchOrders || !bare(sameAgain.ReplaceAllString(fillers.ReplaceAllString(text, ""), ""))) {
		return nil
	}
	w := *d.m.wanted
	var fresh request
	fresh.readNames(text)
	if len(fresh.orders)+len(fresh.users)+len(fresh.emails) == 0 && fresh.name == "" && fresh.pick.way == "" {
		return nil
	}
	w.orders, w.users, w.emails, w.name, w.pick, w.pronoun = fresh.orders, fresh.users, fresh.emails, fresh.name, fresh.pick, false
	w.text = text
	return []request{w}
}

var onlyName = re(`^(?:it's |for |customer )?(\p{L}+(?: \p{L}+)?)[.!]?$`)

var onlyAmount = re(`^(?:(?:then|only|just|make it|make that|try|ok|okay|do|what about|how about|with|let's say)[\s,]+)*[$€£]?\s?\d[\d.,]*\s?(?:%|percent|usd|eur|gbp|euros?|dollars?|bucks|pounds?|[€£])?(?:[\s,]+(?:then|instead|please|only|off))*[\s.!?]*$|^(?:(?:then|only|just|make it|ok|okay)[\s,]+)*half(?: of it)?(?:[\s,]+(?:then|instead|please))*[\s.!?]*$`)

// The method "amended" interprets "make it $20" as the last request with another amount, if the last request failed.
func (d *responder) amended(text string) *request {
	if d.m.wanted == nil || !onlyAmount.MatchString(text) || !slices.ContainsFunc(d.m.last, func(c done) bool { return c.result.status != "" }) {
		return nil
	}
	w := *d.m.wanted
	w.money, w.share, w.percent, w.text = nil, nil, 0, text
	switch w.kind {
	case issueRefund, takePayment:
		w.readAmount(text)
	case applyDiscount:
		if w.readPercent(text); w.percent == 0 {
			w.readPercent(strings.TrimRight(text, ".!? ") + "%")
		}
	default:
		return nil
	}
	if len(w.orders) == 0 && d.m.order != "" {
		w.orders = []string{d.m.order}
	}
	return &w
}

// fill completes a request with the answer to a question. The function returns false if the answer does not contain the
// detail.
func (w *request) fill(text, said string) bool { //nolint:cyclop // one case for each kind of phrase
	var more request
	more.readNames(text)
	// The person corrects the order instead of answering the question. An example: "How many percent?" "I meant
	// ORD-132."
	if w.lacks != lackSearch && w.lacks != lackTo && bare(fillers.ReplaceAllString(text, "")) && (len(more.orders) > 0 || w.lacks == lackBody) {
		w.orders, w.emails, w.users, w.name, w.pick = more.orders, more.emails, more.users, "", pick{}
		return true
	}
	switch w.lacks {
	case lackOrder, lackWhich, lackAccount, lackSearch:
		if len(more.orders)+len(more.users)+len(more.emails) == 0 && more.name == "" {
			if name := onlyName.FindStringSubmatch(text); name != nil && w.lacks != lackWhich && more.pick.way == "" && !more.pronoun {
				more.name = trimName(name[1])
			}
		}
		if len(more.orders)+len(more.users)+len(more.emails) == 0 && more.name == "" && more.pick.way == "" && w.lacks != lackWhich {
			return false
		}
		w.orders, w.users, w.emails, w.name, w.pick, w.pronoun = more.orders, more.users, more.emails, more.name, more.pick, false
		w.text += "\n" + text
	case lackAmount:
		w.readAmount(text)
		return w.money != nil || w.share != nil
	case lackPercent:
		if w.readPercent(withoutNames(text) + "%"); w.percent == 0 {
			return false
		}
	case lackAddress:
		if w.address = findAddress("to " + text); w.address == "" {
			return false
		}
	case lackField:
		w.readProfile(text)
		return len(w.profile) > 0
	case lackTo:
		if len(more.emails)+len(more.orders)+len(more.users) == 0 && more.name == "" {
			return false
		}
		w.emails, w.orders, w.users, w.name = more.emails, more.orders, more.users, more.name
	case lackBody:
		w.body = sentenceOf(dictating.ReplaceAllString(said, ""))
		return w.body != ""
	}
	return true
}
