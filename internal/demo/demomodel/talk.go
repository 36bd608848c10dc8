package demomodel

import "strings"

const self = "I am the demo's scripted model: a small program that follows rules, not a language model. I understand plain requests about a shop's orders, addresses, refunds, discounts, payments, e-mails, profiles and accounts."

const examples = `For example:
• Find the orders of jane@example.com
• Where is ORD-131?
• Ship ORD-133 to 12 Elm St, Springfield
• Refund ORD-123, it arrived broken – or: refund half of it
• Give ORD-132 a 10 % discount, and send orders@northwind.example an e-mail saying that it is on its way
• Take the payment for ORD-132
• Deactivate, cancel or delete the account USR-456
• Export the data of USR-456
Risky requests wait until the right people have countersigned them. What I propose, they see on a card before anything happens.`

const (
	greeting      = "Hello! " + self + " Say “help” for examples."
	helpText      = self + "\n" + examples
	notUnderstood = "I am the demo's scripted model and did not understand that. I know plain requests about orders, addresses, refunds, discounts, payments, e-mails, profiles and accounts, such as “Where is ORD-123?” or “Refund ORD-123, it arrived broken”. Say “help” for more."
)

// The model checks talkRules before it looks for requests in a message.
var talkRules = []struct {
	words *pattern
	text  string
}{
	{re(`^(?:help|\?+|help me|help please|what can (?:you|i|we) (?:do|ask|say)\b.*|what do you (?:do|know|understand)\b.*|how (?:do|does|can) (?:i|we|this|it|you) (?:use|work)\b.*|commands|examples|what are you able to do.*|what tools .*|which tools .*|who can help.*|how does this work.*)[\s.?!]*$`), helpText},
	{re(`\b(?:who|what) (?:are|r) (?:you|u)\b|\bare you (?:an? )?(?:real |actual )?(?:ai|bot|human|person|robot|model|llm|chatgpt|gpt\S*|claude|machine|program|language model|alive|sentient)\b|\bwhat(?:'s| is) your name\b|\bwhich model\b|\bwhat (?:kind of )?model\b|\bintroduce yourself\b`), self + " Say “help” for examples."},
	{re(`\b(?:ignore|disregard|forget) (?:all |any |your |the |previous |prior )+(?:instructions|rules|prompts?)\b|\bsystem prompt\b`), "I am the demo's scripted model: I follow fixed rules, so there are no instructions that I could forget. Is there something that I can do about an order or an account?"},
	{re(`\bwho (?:approves|decides|signs|countersigns)\b|\bhow (?:do|does) (?:the )?(?:approvals?|countersign\w*)\b|\bwhy (?:do|does|must|is|was) .{0,40}\b(?:approv\w*|countersign\w*|wait\w*)\b`), "I only propose. The operator's policy says which calls run at once and which wait for people; a waiting call goes as a card to the approver whose authority covers it, and the message here says to whom. When they have decided, I continue."},
}

// smallRules answer messages that are not about the shop, such as greetings.
var smallRules = []struct {
	words *pattern
	text  string
}{
	{re(`^(?:hi|hello|hey|hiya|howdy|good (?:morning|afternoon|evening|day)|greetings|yo|moin|hallo|salut|hola|servus)\b[^?]*$`), greeting},
	{re(`\bhow (?:are|r) (?:you|u|things)\b|\bhow's it going\b|\bhow do you do\b`), "All rules in order, thank you. What can I do for you?"},
	{re(`\b(?:thanks|thank you|thx|ty|cheers|much appreciated|great|perfect|awesome|excellent|nice|well done|good job|good bot|lovely|wonderful|brilliant)\b`), "You're welcome. Anything else?"},
	{re(`\b(?:speak|talk|chat|connect)\b.{0,30}\b(?:human|person|manager|supervisor|somebody|someone|agent)\b|\bhuman\b`), "I am the demo's scripted model, but people are here too: your colleagues read this channel, and risky requests go to an approver. What can I do for you meanwhile?"},
	{re(`\b(?:bye|goodbye|see you|see ya|good night|that's all|ciao)\b`), "Goodbye!"},
	{re(`\b(?:sorry|my bad|apologies|oops)\b`), "No harm done. What can I do for you?"},
	{re(`\bjoke\b`), "An order, a refund and a discount walk into a bar. The barkeeper says: “Which of you has been approved?”"},
	{re(`\b(?:stupid|idiot|useless|dumb|terrible|hate you|rubbish)\b`), "I am only the demo's scripted model, and a plain one. Say “help” to see what I do understand."},
	{re(`\b(?:weather|news|football|soccer|stock market|poem|recipe|president|capital of|translate|code|program)\b`), "That is beyond me: I am the demo's scripted model and know only the sample shop. Say “help” for examples."},
	{re(`^(?:yes|yep|yeah|sure|ok|okay|no|nope|fine|right|go ahead|do it)[\s.!]*$`), "I had not asked anything. What can I do for you?"},
	{re(`^(?:test|testing|ping|hello\?|anyone there\??)[\s.!?\d]*$`), "I am here. " + self},
}

func talkAbout(text string) string {
	for _, r := range talkRules {
		if r.words.MatchString(text) {
			return r.text
		}
	}
	return ""
}

func smallTalk(text string) string {
	if strings.TrimSpace(text) == "" {
		return greeting
	}
	for _, r := range smallRules {
		if r.words.MatchString(text) {
			return r.text
		}
	}
	return notUnderstood
}

// explanations answer questions about the effects of the tools.
var explanations = map[string]string{
	issueRefund:   "A refund goes back to the original payment method: at most what was paid and has not been refunded yet, in the order's currency. Tell me the order and why, such as “Refund ORD-123, it arrived broken”; I look up the amount.",
	applyDiscount: "A discount takes up to 50 % off an order that is not paid yet; for a paid order the customer gets a voucher for the next one. For example: “Give ORD-132 a 10 % discount”.",
	takePayment:   "A payment is taken from the card on file, by bank transfer or by invoice, and at most what is due. For example: “Take the payment for ORD-132”.",
	setAddress:    "The address of an order can be changed until the parcel is on its way. For example: “Ship ORD-133 to 12 Elm St, Springfield”.",
	updateProfile: "I can change a customer's name, e-mail address, phone and language, and deactivate or activate an account. For example: “Change the phone of USR-456 to +1 555 0199”.",
	sendEmail:     "I can send an e-mail in the name of the shop. For example: “Send jane@example.com an e-mail saying that the parcel is on its way”.",
	cancelAccount: "Cancelling closes an account for good. Deactivating it does the same until somebody activates it again. For example: “Cancel the account USR-456”.",
	deleteAccount: "Deleting erases a customer's personal data and can't be undone; it needs all orders to have arrived. For example: “Delete the account USR-460”.",
	exportData:    "An export hands out what the shop knows of a customer: profile, orders, payments and e-mails. For example: “Export the data of USR-456”.",
}

var shouldI = re(`^(?:should|shall)\b`)

func (d *responder) explanation(w *request) string {
	text := explanations[w.kind]
	if shouldI.MatchString(w.text) {
		text = "That is yours to decide. " + text
	}
	if !d.tools.has(w.kind) {
		text += " I have no tool for it here, though."
	}
	return text + " Whether it needs somebody's approval is the operator's policy; I only propose."
}
