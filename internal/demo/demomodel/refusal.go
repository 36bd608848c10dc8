package demomodel

import (
	"fmt"
	"strings"
)

// offer is a suggested alternative. The answer "yes" accepts the first offer.
type offer struct {
	text    string // completes "I can …"
	request request
}

func offerText(offers []offer) string {
	switch len(offers) {
	case 0:
		return ""
	case 1:
		return "Shall I " + offers[0].text + "?"
	}
	parts := []string{"I can do one of these instead:"}
	for i, o := range offers {
		parts = append(parts, fmt.Sprintf("%d. %s", i+1, o.text))
	}
	return strings.Join(append(parts, "Which one shall it be?"), "\n")
}

// attempt describes a call by its arguments.
func (d *responder) attempt(c done) string {
	order, user := value(c.args, "order_id"), value(c.args, "user_id")
	switch d.tools.kindOf(c.Name) {
	case issueRefund:
		amount, _ := c.args.cents("amount")
		return fmt.Sprintf("The refund of %s for order %s", show(amount, c.args.text("currency")), order)
	case applyDiscount:
		return fmt.Sprintf("The discount of %s %% for order %s", value(c.args, "percent"), order)
	case takePayment:
		amount, _ := c.args.cents("amount")
		return fmt.Sprintf("The payment of %s for order %s", show(amount, c.args.text("currency")), order)
	case setAddress:
		return "The new address for order " + order
	case sendEmail:
		return "The e-mail to " + value(c.args, "to")
	case cancelAccount:
		return "Cancelling the account " + user
	case deleteAccount:
		return "Deleting the account " + user
	case updateProfile:
		if c.args.text("status") == "deactivated" {
			return "Deactivating the account " + user
		}
		return "The change to the profile of " + user
	case exportData:
		return "The export of the data of " + user
	case searchOrders:
		return "The search for orders"
	}
	return "The call of " + c.Name
}

var (
	saysExpired = re(`in time|nobody|no decision|expired`)
	atMost      = re(`at most (\S+)`)
)

// refusal returns sentences on why a call failed.
func (d *responder) refusal(c done) string {
	what, r := d.attempt(c), c.result
	by, why := "", ""
	if r.decidedBy != "" {
		by = " by the " + r.decidedBy
	}
	if reason := strings.TrimRight(strings.TrimSpace(r.reason), "."); reason != "" {
		why = ": " + strings.ReplaceAll(reason, "\n", " ")
	}
	switch r.status {
	case "rejected":
		return what + " was rejected" + by + why + ". Nothing was changed."
	case "expired":
		if saysExpired.MatchString(why) {
			why = ""
		}
		return what + " was not decided in time" + why + ", so nothing was changed. You can ask again later, when somebody is there to decide."
	case "withdrawn":
		return what + " was withdrawn before anybody decided. Nothing was changed."
	case "revoked":
		return what + " had been approved, but the approval was taken back" + by + why + ". Nothing was changed."
	case "voided":
		return what + " fell void while it waited" + why + ". Nothing was changed."
	case "refused":
		return what + " is not allowed here" + why + ". Nothing was changed."
	case "observed":
		return what + " was not carried out, because for now I only observe" + why + "."
	case "unknown":
		if why != "" {
			why = " (" + strings.TrimPrefix(why, ": ") + ")"
		}
		return "It is not known yet whether this happened: " + lower(what) + why + ". Somebody has to look; until then I won't try it again."
	}
	return what + " did not work" + why + "."
}

func lower(text string) string { return strings.ToLower(text[:1]) + text[1:] }

// The method "alternatives" offers alternatives to a failed call.
func (d *responder) alternatives(c done) {
	switch status := c.result.status; {
	case status == "expired", status == "voided", c.result.reported:
		if d.tools.names[c.Name] && len(d.offers) == 0 {
			d.offers = append(d.offers, offer{"ask for it again", request{kind: "again"}})
		}
		return
	case status == "withdrawn", status == "unknown":
		return
	}
	order, user := value(c.args, "order_id"), value(c.args, "user_id")
	switch d.tools.kindOf(c.Name) {
	case cancelAccount, deleteAccount:
		if c.result.status != "error" || strings.Contains(strings.ToLower(c.result.reason), "deactivat") {
			d.offerDeactivation(user)
		}
	case issueRefund:
		d.offerLess(c, order)
	case applyDiscount:
		d.offerSmallerDiscount(c, order)
	case takePayment:
		if c.args.text("method") != "invoice" && (c.result.status != "error" || byCard.MatchString(c.result.reason)) {
			amount, _ := c.args.cents("amount")
			d.offer(takePayment, "send an invoice instead of charging at once",
				request{orders: []string{order}, money: &money{amount, c.args.text("currency")}, method: "invoice"})
		}
	case setAddress:
		if o := d.m.orders[order]; o != nil && o.email != "" && c.result.status != "error" {
			d.offer(sendEmail, "ask "+o.name+" by e-mail to confirm the address",
				request{emails: []string{o.email}, subject: "Your order " + order, body: "Please confirm the address for your order " + order + ": " + value(c.args, "address") + "."})
		}
	case sendEmail:
		w := request{kind: sendEmail, emails: []string{value(c.args, "to")}}
		d.ask(&w, lackBody, "How shall I word it instead?")
	case exportData:
		d.offer(searchOrders, "show the orders of "+user+" here instead", request{users: []string{user}})
	}
}

// offer suggests a request, if the request's tool is among the offered tools.
func (d *responder) offer(kind, text string, w request) {
	if d.tools.has(kind) {
		w.kind = kind
		d.offers = append(d.offers, offer{text, w})
	}
}

func (d *responder) offerDeactivation(user string) {
	if !d.tools.has(updateProfile) {
		d.notes = append(d.notes, "I suggest deactivating the account instead: nobody can use it then, and it can be undone. I have no tool for that here.")
		return
	}
	d.notes = append(d.notes, "I suggest deactivating the account instead: nobody can use it then, and it can be undone.")
	d.offer(updateProfile, "deactivate "+user, request{users: []string{user}, profile: []field{{"status", "deactivated"}}})
}

// offerLess suggests a smaller refund or a discount. If the reason of the refusal names an amount, the smaller refund
// has that amount.
func (d *responder) offerLess(c done, order string) {
	asked, _ := c.args.cents("amount")
	currency := c.args.text("currency")
	reason := value(c.args, "reason")
	less := (asked + 1) / 2
	if named := findMoney(withoutNames(c.result.reason), false); c.result.status != "error" && named != nil && named.cents < asked && named.cents > 0 {
		less = named.cents
	}
	if m := atMost.FindStringSubmatch(c.result.reason); m != nil {
		if most := findMoney(m[1], true); most != nil && most.cents > 0 {
			less = most.cents
		}
	} else if c.result.status == "error" {
		return // the call failed, so half of the amount would fail too
	}
	d.offer(issueRefund, "refund less: "+show(less, currency)+" for "+order, request{orders: []string{order}, money: &money{less, currency}, reason: reason})
	if c.result.status != "error" {
		d.offer(applyDiscount, "give a discount of 15 % instead (a voucher if the order is paid)", request{orders: []string{order}, percent: 15, reason: reason})
	}
}

func (d *responder) offerSmallerDiscount(c done, order string) {
	asked, _ := c.args.cents("percent")
	less := asked / 100 / 2
	if m := percentage.FindStringSubmatch(c.result.reason); m != nil {
		if n, ok := parseCents(m[1]); ok && n/100 < asked/100 {
			less = n / 100
		}
	}
	if c.result.status == "error" || less < 1 {
		return
	}
	d.offer(applyDiscount, fmt.Sprintf("give %d %% instead", less), request{orders: []string{order}, percent: less, reason: value(c.args, "reason")})
}
