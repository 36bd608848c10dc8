package demomodel

// handleEmail sends an e-mail to each recipient.
func (d *responder) handleEmail(w *request) {
	to, ok := d.recipients(w)
	if !ok {
		return
	}
	for _, address := range to {
		d.m.meet("", address, "")
		if i := d.claim(sendEmail, "to", address); i >= 0 {
			d.remember(w)
			d.report(w, i)
			continue
		}
		if w.body == "" {
			d.ask(w, lackBody, "What shall the e-mail to "+address+" say?")
			return
		}
		d.act(w, d.tools.call(sendEmail, textArg("to", address), textArg("subject", subjectOf(w)), textArg("body", w.body)))
	}
}

func (d *responder) recipients(w *request) (addresses []string, ok bool) {
	if len(w.emails) > 0 {
		return w.emails, true
	}
	who := w.name
	if len(w.users) > 0 {
		who = w.users[0]
	}
	if who != "" {
		if p := d.m.find(who); p != nil && p.email != "" {
			return []string{p.email}, true
		}
		by, _ := d.customer(w)
		list, state := d.lookup(by)
		if state != known {
			return nil, false
		}
		if p := d.m.find(who); p != nil && p.email != "" {
			return []string{p.email}, true
		}
		if len(list) == 0 {
			d.ask(w, lackTo, "I found no customer "+who+". To which address shall the e-mail go?")
		} else {
			d.ask(w, lackTo, "There is more than one customer "+who+". To which address shall the e-mail go?")
		}
		return nil, false
	}
	if len(w.orders) > 0 {
		o := d.details(w.orders[0])
		if o == nil || o.email == "" {
			return nil, false
		}
		return []string{o.email}, true
	}
	if d.searching {
		return nil, false
	}
	if d.m.email != "" {
		return []string{d.m.email}, true
	}
	d.ask(w, lackTo, "To whom shall the e-mail go? Give me the address, or the customer's order number.")
	return nil, false
}
