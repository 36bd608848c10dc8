// Package store is the contract of Countersign's durable state: the records, one typed transaction, and the errors.
// Package store/bolt implements the contract with bbolt, and package store/postgres with PostgreSQL. Package
// store/storetest is the conformance suite that every backend passes.
//
// The contract:
//
//   - Update commits everything that its closure wrote, or nothing. When Update returns nil, the writes are durable.
//   - A closure may run more than once, because commits are shared and a backend may retry after a serialization
//     failure. Therefore a closure does no I/O. Outside of the transaction, a closure writes only to its own variables,
//     and resets these variables on each run.
//   - Update returns a closure's error unchanged and undoes only that closure's writes.
//   - Records with a Version are guarded. A Put with a version other than the stored version fails with ErrConflict.
//     Each Put increments the stored version. Version 0 creates a record.
//   - Reads inside a transaction see the writes of the same transaction. Each method documents the order of its list.
//     The order of creation is the order in which records were first put, even within one transaction. A limit of 0
//     lists nothing.
//   - Ids are non-empty UTF-8, and a message's Seq is at least 1. A Put with any other value is refused. A refused Put
//     leaves the transaction usable. In texts, U+FFFD replaces bytes that are not UTF-8. Raw JSON and payloads are kept
//     byte for byte.
//   - A write that fails with ErrFull, ErrMoved or ErrUnavailable changed nothing, and the store stays usable: see
//     Refused.
//   - Any other error of a commit is ErrCommitUnknown: the writes may or may not be there after a restart. The process
//     must stop and restart from the stored state.
//
// Times are stored in UTC to the microsecond.
//
// A backend also lists its rows in a form that every other backend can read (Contents, Filling). CopyRows uses this to
// copy a store to another backend, with its versions, its order of creation and its whole history.
package store
