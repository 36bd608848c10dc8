package demomodel

import "strings"

// The kinds of requests. Each tool of the shop has a kind with the tool's name. Other kinds have no tool.
const (
	searchOrders  = "search_orders"
	setAddress    = "update_shipping_address"
	updateProfile = "update_profile"
	applyDiscount = "apply_discount"
	issueRefund   = "issue_refund"
	takePayment   = "process_payment"
	sendEmail     = "send_email"
	deleteAccount = "delete_account"
	cancelAccount = "cancel_account"
	exportData    = "export_customer_data"

	cancelOrder = "cancel an order"
	recap       = "recap"
)

// mood is the form in which a clause states its request.
type mood int

const (
	wanted  mood = iota
	unwant       // "don't refund it"
	explain      // "how do refunds work?"
)

type rule struct {
	kind string
	// words matches the verb or noun that determines the meaning of the clause.
	words *pattern
}

// rules has the rules that find the kind of a clause. If several rules match, the rule whose words come first in the
// clause applies. If several rules match at the same position, the first in this list applies.
var rules = []rule{
	{updateProfile, re(`\b(?:de-?activat|suspend|re-?activat|unsuspend)\w*`)},
	{updateProfile, re(`\b(?:pause|put on hold|freeze|activate) .{0,40}\baccount\b`)},
	{updateProfile, re(`\b(?:change|update|set|correct|edit|fix|switch|replace)\b[^!?;\n]{0,60}?\b(?:name|phone|telephone|mobile|e-?mail|language|profile)\b`)},
	{updateProfile, re(`\brename\b`)},
	{cancelOrder, re(`\bcancel(?:l?ing)? (?:the |this |that |my |his |her |their |an? )?(?:orders?|ord-?\d+|#\d+|shipment|delivery|parcel)\b`)},
	{deleteAccount, re(`\b(?:delet|eras|remov|wip)(?:e|ing)\b[^!?;\n]{0,60}?\b(?:accounts?|profile|user|customer|data|everything|usr-\w+|u-\w+|acc-\w+|them|her|him)\b`)},
	{deleteAccount, re(`\bright to be forgotten\b|\bforget (?:her|him|them|the customer)\b`)},
	{deleteAccount, re(`\baccounts?\b[^!?;\n]{0,30}\b(?:deleted|erased|removed)\b`)},
	{cancelAccount, re(`\b(?:cancel(?:l?ing)?|clos(?:e|ing)|terminat(?:e|ing)|end|shut down)\b[^!?;\n]{0,60}?\b(?:accounts?|subscription|membership|usr-\w+|u-\w+|acc-\w+|customer|user)\b`)},
	{cancelAccount, re(`\baccounts?\b[^!?;\n]{0,30}\b(?:cancell?ed|closed|terminated)\b`)},
	{exportData, re(`\b(?:export|download|hand over|hand out|dump|copy of)\b[^!?;\n]{0,60}\b(?:data|information|profile|everything|record|usr-\w+|u-\w+)`)},
	{exportData, re(`\bdata export\b|\bexport\b|\beverything (?:that )?we (?:have|know|hold|store)\b|\b(?:subject|data) access request\b`)},
	{sendEmail, re(`^(?:e-?mail|mail)\b(?: (?:to )?\S+)`)},
	{sendEmail, re(`^(?:tell|notify|inform|message|write(?: to)?) (?:to )?(?:(?:the )?customer|her|him|them|\S*@|\p{L})`)},
	{sendEmail, re(`^let (?:(?:the )?customer|her|him|them|\S*@\S*|\p{Lu}\p{L}+(?: \p{Lu}\p{L}+)?) know`)},
	{sendEmail, re(`^(?:reply|respond) to\b`)},
	{sendEmail, re(`\b(?:send|write|drop|shoot|compose|draft)\b[^!?;\n]{0,80}?\b(?:e-?mails?|message|mail|note|letter|reminder|apology)\b`)},
	{sendEmail, re(`\b(?:send|write)\b[^!?;\n]{0,40}@`)},
	{applyDiscount, re(`\b(?:(?:apply|give|giving|offer|grant|add|take|knock)\b[^!?;\n]{0,40}?)?(?:\d{1,3} ?(?:%|percent|per cent) (?:off|discount|reduction|voucher|coupon)|half price|discount\w*|coupons?|vouchers?|price reduction|store credit)\b`)},
	{applyDiscount, re(`\bcompensat(?:e|ing)\b[^!?;\n]*(?:\d ?(?:%|percent) (?:off|discount)|\bdiscount|\bvoucher)`)},
	{applyDiscount, re(`\b\d{1,3} ?(?:%|percent) cheaper\b`)},
	{applyDiscount, re(`[$€£] ?\d[\d.,]* (?:off|discount|voucher)\b`)},
	{applyDiscount, re(`\b(?:knock|take)\b[^!?;\n]{0,30}\boff\b`)},
	{issueRefund, re(`\b(?:(?:issue|process|give|make|want|need|get|start)\w*\s[^!?;\n]{0,30}?)?\brefund(?:ing|s)?\b`)},
	{issueRefund, re(`\b(?:reimburs(?:e|ing)|money back|cash back|pay(?:ing)? (?:\S+ )?back|give (?:\S+ ){0,4}?back|return (?:the |her |his |their )?money|compensate)\b`)},
	{takePayment, re(`\b(?:charg(?:e|ing)|debit|bill)\b (?:\S+)`)},
	{takePayment, re(`\b(?:process|take|collect|capture|make|request)\b[^!?;\n]{0,30}?\bpayments?\b`)},
	{takePayment, re(`\b(?:collect|take) (?:the )?(?:money|balance|rest|amount|\S*\d)`)},
	{takePayment, re(`\b(?:use|try|by|via)\b[^!?;\n]{0,20}\b(?:bank transfer|transfer|invoice|wire)\b`)},
	{setAddress, re(`\b(?:change|update|set|correct|edit|fix|switch|replace|use|put)\b[^!?;\n]{0,60}?\baddress\b`)},
	{setAddress, re(`\b(?:ship|deliver|redirect|reroute|re-route|forward)\b[^!?;\n]{0,80}?\bto\b`)},
	{setAddress, re(`\bmoved to\b`)},
	{setAddress, re(`\bsend\b[^@]{0,60}?\bto\b`)},
	{setAddress, re(`\b(?:new|correct|right) (?:shipping |delivery )?address\b|\baddress\b[^!?;\n]{0,50}\b(?:should be|is now|has changed to|is wrong)\b`)},
	{searchOrders, re(`^(?:find|look\b|lookup|search|show|list|check|track|pull up|display|locate|see)\b`)},
	{searchOrders, re(`^(?:(?:any|other|more|some|our|are there|do we have|her|his|their|all|the|my|open|unpaid|recent|latest|delivered|shipped|cancelled) )*orders\b`)},
	{searchOrders, re(`\b(?:look (?:\S+ )?up|looking for|search for|need the (?:details|status|orders?)|(?:details|status|tracking(?: number)?|info(?:rmation)?) (?:of|on|for|about))\b`)},
	{searchOrders, re(`\bget (?:me )?(?:the |all |a list of )?(?:\S+ )?(?:orders?|details|status|info|ord-?\d+)\b`)},
}

var (
	asking    = re(`^(?:where|what|what's|which|when|whose|who|why|how|has|have|did|does|do|was|were|is|are|should|shall|will)\b`)
	about     = re(`\b(?:orders?|ord-?\d+|#\d+|parcel|package|delivery|shipment|shipped|delivered|arrived?|refund(?:ed|able)|paid|owe|due|bought|buy|purchased?|spent|accounts?|e-?mail|phone|customer|cost|total|tracking|address|status|items?|refund|\S+@\S+|(?:first|second|third|last|other|cheaper|cheapest) one)\b`)
	explained = re(`^(?:how (?:do|does|can|would|is|are|to|long)|what happens|what if|who (?:approves?|decides?|can|may|has to|must|signs)\b|why\b|should (?:i|we)|shall (?:i|we)|what(?:'s| is| are) (?:your|the|our) (?:\S+ )?(?:policy|policies|rules?|limits?)|do you\b|are (?:refunds|discounts))`)
	recalled  = re(`^(?:did (?:it|that|the (?:refund|e-?mail|payment|discount|change|cancell?ation|deletion)|you)\b|have you\b|(?:has|was) (?:it|that|the (?:refund|e-?mail|payment|discount|change|cancell?ation|deletion))(?: been)? (?:done|sent|approved|rejected|through|gone|go|made|issued|processed)|what happened|what became|what(?:'s| is) (?:the status of|happening with) (?:my|the|that|this) (?:request|refund|approval|call)|(?:is|are) (?:it|that|they) (?:done|approved|through|sent)|any (?:news|updates?)|why (?:was|is|has|did|were) (?:it|that|this|they|the (?:refund|e-?mail|payment|discount|change|cancell?ation|deletion|request|call))\b|who (?:approved|rejected|decided|countersigned))`)
	negating  = re(`(?:\b(?:don't|do not|does not|doesn't|didn't|never|not|no need to|shouldn't|should not|must not|mustn't|won't|without|stop|no longer|forget(?: about)?)\s+(?:want (?:you )?to\s+|want (?:a|any|the)\s+|need (?:to|a)\s+|(?:a|any|the|be|to|do)\s+)?)$`)
	passing   = re(`\b(?:instead of|rather than|about|regarding|concerning|because of|due to|after|before|unless|until|if|once) (?:the |a |an |any |their |her |his |issuing |giving |we |i |you )?$`)
)

// intent returns the kind of request of a segment. If the segment has no request, the kind is empty.
func intent(segment string) (kind string, m mood) {
	text := unmarked(strings.TrimSpace(segment))
	core := fillers.ReplaceAllString(text, "")
	kind, m = firstRule(core, explained.MatchString(core))
	switch {
	case recalled.MatchString(core) && len(findOrders(core)) == 0:
		return recap, wanted
	case explained.MatchString(core) && !requestInDisguise.MatchString(text):
		if kind == searchOrders || kind == "" {
			break
		}
		return kind, explain
	}
	if requestInDisguise.MatchString(text) && kind != "" {
		return kind, m
	}
	if asking.MatchString(core) && about.MatchString(core) {
		return searchOrders, wanted
	}
	if kind == "" && bare(core) {
		return searchOrders, wanted
	}
	return kind, m
}

// requestInDisguise matches questions that ask for an action.
var requestInDisguise = re(`^(?:.{0,20}\b)?(?:is it possible to|would it be possible to|are you able to|how about|what about|why don't you|can't you|is there (?:a|any) way to)\b`)

// firstRule finds the kind of a request. In a question about how something works, the kind may be in a subordinate
// clause: "what happens if I cancel an account?"
func firstRule(text string, question bool) (kind string, m mood) {
	first := len(text) + 1
	for _, r := range rules {
		for _, at := range r.words.FindAllStringIndex(text, -1) {
			if at[0] >= first {
				break
			}
			ahead := text[:at[0]]
			not := negating.MatchString(ahead)
			if !not && !question && passing.MatchString(ahead) {
				continue
			}
			first, kind, m = at[0], r.kind, wanted
			if not {
				m = unwant
			}
			break
		}
	}
	return kind, m
}

var besideNames = re(`\b(?:orders?|customer|account|and|the|for|of|please|number)\b|'s\b|[^\p{L}\p{N}]`)

// The function "bare" reports whether the text consists only of the name of an order, an account or a customer.
func bare(text string) bool {
	if len(findOrders(text))+len(findUsers(text))+len(findEmails(text)) == 0 {
		return false
	}
	rest := besideNames.ReplaceAllString(withoutNames(text), "")
	return rest == ""
}
