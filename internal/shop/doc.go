// Package shop is the sample shop of the demo: a few customers with their
// accounts, orders, payments and e-mails, and the tools that read and change
// them. It stands for the operator's own systems, so it behaves as those do:
// it has rules of its own and refuses what breaks them, whoever approved it.
//
// What it promises:
//
//   - Every change carries an idempotency key. The same key answered once is
//     answered with the same bytes again, and nothing happens a second time,
//     also after a restart. The same key with another tool or other arguments
//     is an error.
//   - A change, its ledger entry and its key become durable together, in one
//     atomic replacement of the file, before the call returns. A change that
//     cannot be made durable did not happen.
//   - The ledger only grows. Each effect has exactly one entry; a repeated key
//     is counted on the entry of the effect. It is the witness that nothing
//     ran twice.
//   - A refusal changes nothing, and its error is one sentence that says why
//     and what to do instead.
//
// Amounts are exact: they are read from and written as decimal numbers and are
// never held in floating point.
package shop
