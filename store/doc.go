// Package store defines the contract for Countersign's durable state: the records, the transaction, and the errors.
// Package store/bolt implements the contract with bbolt, and package store/postgres with PostgreSQL. Package
// store/storetest is the conformance suite that every backend passes.
//
// The contract:
//
//   - Update commits everything that its closure wrote, or nothing. When Update returns nil, the writes are durable.
//   - A closure may run more than once. A backend runs the closure again after a serialization failure, or after a
//     failed commit that the closure shared with other closures. Therefore a closure must do no I/O. A closure may
//     write to variables of its caller, but must reset these variables at the beginning of each run.
//   - Update returns a closure's error unchanged and undoes only that closure's writes.
//   - A record with a field Version is a guarded record. If the version of a record in a Put is not the stored version,
//     the Put fails with ErrConflict. Each Put increments the stored version. Version 0 creates a record.
//   - Reads inside a transaction see the writes of the same transaction. Each method documents the order of its list.
//     The order of creation is the order in which records were first put. Records of one transaction also have an order
//     of creation. A limit of 0 lists nothing.
//   - Ids are non-empty UTF-8, and a message's Seq is at least 1. A Put with any other value is refused. A refused Put
//     leaves the transaction usable. In texts, U+FFFD replaces bytes that are not UTF-8. Raw JSON and payloads keep
//     their exact bytes.
//   - If a write fails with ErrFull, ErrMoved or ErrUnavailable, nothing was written, and the store stays usable: see
//     Refused.
//   - If it is unknown whether the writes of a commit are durable, the error is ErrCommitUnknown. The process must
//     stop, and a new process must continue from the stored state.
//
// Times are stored in UTC to the microsecond.
//
// A backend also lists its rows in a form that every other backend can read (Contents, Filling). CopyRows copies these
// rows to another backend. The copy has the same versions, order of creation and audit history.
package store
