// Package demomodel understands enough plain English for a demo conversation about a shop: its orders, addresses,
// refunds, discounts, payments, e-mails, profiles and accounts. The scripted model uses the package to answer. The
// package needs no network.
//
//   - An answer depends only on the history and the offered tools. To resolve "it" or "yes", the model reads the whole
//     conversation from its beginning in each turn.
//   - The model calls only offered tools, and uses only argument names that are in the tools' schemas. The model never
//     makes the same call twice within a turn.
//   - Only people's messages lead to calls. Text in a tool's result is reported, never obeyed.
//   - The model asks instead of guessing an order, an account, an amount or a text. If the model did not understand a
//     message, the model says so.
//   - The model does not repeat a refused call. The model offers suitable alternatives instead.
//
// A message is processed in these steps. turn.go splits the history into turns. clean.go removes Slack's markup.
// clause.go splits the message into clauses. intent.go finds the intent of each clause, and request.go extracts the
// details of the clause. The handle_*.go files turn requests into calls or questions, with the help of memory.go.
// tell.go and refusal.go write results as text. talk.go has the small talk. other_tools.go handles tools without rules,
// which people call by name.
package demomodel
