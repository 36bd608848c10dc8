// Package clerk understands enough plain English about a shop's orders,
// addresses, refunds, discounts, payments, e-mails, profiles and accounts to be
// worth chatting with. It is the mind of the scripted model, without a network.
//
// What it promises:
//
//   - An answer follows from the history and the offered tools alone. To know
//     what "it" or "yes" means it reads the whole conversation again each time.
//   - It calls only tools that are offered, with arguments that their schemas
//     name, and never the same thing twice within one turn.
//   - Only people's words lead to calls. What a tool's result says is told, not
//     obeyed.
//   - It asks back rather than guess an order, an account, an amount or a text,
//     and it says when it did not understand.
//   - A refused call is not repeated; alternatives that fit are offered instead.
//
// The way of a message: turn.go cuts the history into turns, clean.go rids a
// message of Slack's markup, clause.go cuts it into clauses and intent.go says
// what each wants, wish.go takes the details out, the handle_*.go files turn
// wishes into calls or questions with the help of memory.go, and tell.go and
// refusal.go put results into words. talk.go is small talk.
package clerk
