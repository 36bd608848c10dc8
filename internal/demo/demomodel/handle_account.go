package demomodel

import (
	"encoding/json"
	"slices"
	"strings"
)

var (
	myAccount = re(`\bmy account\b`)
	everyone  = re(`\b(?:all|every|each)\b[^!?;\n]{0,20}\b(?:accounts?|customers?|users?|profiles?|everybody|everyone)\b`)
)

// handleAccounts processes a request for each of its accounts.
func (d *responder) handleAccounts(w *request) {
	ids, ok := d.accountsOf(w)
	if !ok {
		return
	}
	for _, id := range ids {
		d.m.meet(id, "", "")
		if i := d.claim(w.kind, "user_id", id); i >= 0 {
			d.remember(w)
			d.report(w, i)
			continue
		}
		user := textArg("user_id", id)
		switch w.kind {
		case cancelAccount, deleteAccount:
			d.act(w, d.tools.call(w.kind, user, textArg("reason", w.reason)))
		case exportData:
			sections := arg{name: "sections"}
			if len(w.sections) > 0 {
				sections.value = listOf(w.sections)
			}
			d.act(w, d.tools.call(exportData, user, sections))
		case updateProfile:
			if len(w.profile) == 0 {
				d.ask(w, lackField, "What shall I change in the profile of "+id+"? I can change name, e-mail address, phone and language, and deactivate or activate the account.")
				return
			}
			args := []arg{user}
			for _, f := range w.profile {
				args = append(args, textArg(f.name, f.value))
			}
			d.act(w, d.tools.call(updateProfile, args...))
		}
	}
}

func listOf(words []string) string {
	data, err := json.Marshal(words)
	if err != nil {
		panic("demomodel: words that can't be written: " + err.Error()) // impossible, because a string always has a JSON form
	}
	return string(data)
}

// accountsOf returns the accounts of a request. ok is false if a call or an answer is needed first.
func (d *responder) accountsOf(w *request) (ids []string, ok bool) {
	if len(w.users) > 0 {
		return w.users, true
	}
	if by, some := d.customer(w); some {
		who := d.whom(w)
		if p := d.m.find(who); p != nil && p.id != "" {
			return []string{p.id}, true
		}
		list, state := d.lookup(by)
		if state != known {
			return nil, false
		}
		return d.accountIn(w, list, "I found no customer "+who+" with an order, so I don't know the account. Do you have its number (such as USR-456)?")
	}
	if len(w.orders) > 0 {
		o := d.details(w.orders[0])
		if o == nil || o.user == "" {
			return nil, false
		}
		return []string{o.user}, true
	}
	if d.searching {
		return nil, false
	}
	if everyone.MatchString(w.text) {
		d.ask(w, lackAccount, "I do that for one account at a time. Whose is it?")
		return nil, false
	}
	if d.m.user != "" && !myAccount.MatchString(w.text) {
		return []string{d.m.user}, true
	}
	if d.m.email != "" && w.pronoun {
		return d.accountsOf(withEmail(w, d.m.email))
	}
	d.ask(w, lackAccount, "Whose account is it? Give me the account number (such as USR-456), or the customer's e-mail address or name.")
	return nil, false
}

// accountIn returns the account of the found orders. If there is no account, or more than one, accountIn asks a
// question.
func (d *responder) accountIn(w *request, list []*order, none string) ([]string, bool) {
	var ids, choices []string
	for _, o := range list {
		if o.user != "" && !slices.Contains(ids, o.user) {
			ids = append(ids, o.user)
			choices = append(choices, o.user+" ("+o.name+", "+o.email+")")
		}
	}
	switch len(ids) {
	case 0:
		d.ask(w, lackAccount, none)
		return nil, false
	case 1:
		return ids, true
	}
	d.ask(w, lackAccount, "Which of these accounts do you mean: "+strings.Join(choices, ", ")+"?")
	return nil, false
}
