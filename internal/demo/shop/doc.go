// Package shop is the sample shop of the demo. The shop has a few customers with accounts, orders, payments and
// e-mails. The shop's tools read and change this data. The shop represents an operator's own systems. The shop has its
// own rules, and refuses a call that breaks a rule even if people approved the call.
//
//   - Every change has an idempotency key. A call with a repeated key gets the same answer, byte for byte, and changes
//     nothing, even after a restart. A repeated key with another tool or other arguments is an error.
//   - A change, its ledger entry and its key become durable together, in one atomic replacement of the file, before the
//     call returns. If the replacement fails, the shop does not change.
//   - The ledger only grows. Each effect has exactly one entry. The entry also counts the calls that repeated its key.
//     Therefore the ledger proves that no effect happened twice.
//   - A refused call changes nothing. The error of a refused call is one sentence that gives the reason and an
//     alternative.
//
// Amounts are exact. The shop reads and writes amounts as decimal numbers, and never stores them as floating point.
package shop
