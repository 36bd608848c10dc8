// Package shop is the sample shop of the demo: a few customers with accounts, orders, payments and e-mails, and the
// tools that read and change them. The shop represents an operator's own systems. The shop has its own rules, and
// refuses a call that breaks a rule even if the call was approved.
//
//   - Every change has an idempotency key. A call with a repeated key gets the same answer, byte for byte, and changes
//     nothing, even after a restart. The same key with another tool or other arguments is an error.
//   - A change, its ledger entry and its key become durable together, in one atomic replacement of the file, before the
//     call returns. If that fails, the change did not happen.
//   - The ledger only grows. Each effect has exactly one entry, which also counts the calls that repeated its key. So
//     the ledger proves that nothing ran twice.
//   - A refusal changes nothing, and its error is one sentence that says why and what to do instead.
//
// Amounts are exact: they are read and written as decimal numbers and never stored as floating point.
package shop
