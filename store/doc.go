// Package store is the contract of Countersign's durable state: the records, one typed transaction, and the errors.
// Package store/bolt implements it over bbolt; package store/storetest is the one conformance suite that every
// backend passes.
//
// It promises:
//
//   - Update commits everything that its closure wrote, or nothing. When Update returns nil the writes are durable.
//   - A closure may run more than once (commits are shared, and a backend may retry after a serialisation
//     failure). It does no I/O and writes to nothing outside of the transaction but its own variables, which it
//     sets anew on each run.
//   - A closure's error is returned by Update as it is and undoes that closure's writes only.
//   - Records with a Version are guarded: a Put with another version than the stored one fails with ErrConflict, and the
//     stored version is one more than the given. Version 0 creates.
//   - Reads inside a transaction see its own writes; lists are ordered as each method says. Where that is an order of
//     creation, it is the order in which the records were first put, also within one transaction. A limit of 0 lists nothing.
//   - Ids are UTF-8 and not empty, and a message's Seq is at least 1: anything else is refused. A refused Put leaves the
//     transaction usable. Texts have U+FFFD in place of bytes that are not UTF-8; raw JSON and payloads are kept byte for byte.
//   - An error of the commit itself is ErrCommitUnknown: the writes may be there after a restart. The
//     process must stop and start again from what is stored.
//
// Times are stored in UTC to the microsecond.
package store
