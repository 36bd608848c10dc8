// Package postgres keeps Countersign's durable state in a PostgreSQL database. The package implements the contract of
// package store over jackc/pgx, and has these properties:
//   - Transactions are serializable: the result is as if the closures of all processes had run one after the other.
//     Several rules of the workflow read rows that they do not write. For example, the rule for a budget reads
//     counters, and the rule for grants reads the live grants. With the isolation level repeatable read, two
//     concurrent closures could each decide correctly, but together break a rule. To prevent this, each rule would
//     need a lock, and a programmer could forget the lock. The cost of serializable transactions is that a closure
//     may run again after a conflict (40001, 40P01). Two closures can conflict even if they use different rows, when
//     these rows are close to each other in an index. While conflicts are frequent, transactions run one after the
//     other (turns.go). After three conflicts, a closure runs alone in its process.
//   - A View is a read-only transaction over one snapshot (repeatable read). A View takes no locks.
//   - A transaction sends nothing before its first read. The transaction collects its writes, and sends them together
//     with the COMMIT in one round trip. All transactions send their writes in the same order, so they do not deadlock.
//     A read may depend on collected writes. In this case, the transaction makes these writes in a savepoint, reads,
//     and rolls back to the savepoint, in one round trip. A statement that changes many rows, such as a statement of an
//     erasure, is sent immediately, after the collected writes. After such a statement, the transaction waits at most
//     0.1 s for a lock. If the transaction does not get the lock, the closure runs again.
//   - A transaction usually reads a record only once. Together with some records, such as a request, the transaction
//     reads the records that it will probably need next (together.go).
//   - Pages of tables and indexes have free space for later versions and later rows (migrations/00009_room.sql).
//     Without this free space, most concurrent transactions would conflict, because they would write to index pages
//     that other transactions have read.
//   - The store inserts a new record without looking for an existing record, because ids are random. If the record
//     exists, the insert fails, and the transaction is rolled back. The closure then runs again. In this second run,
//     the store looks for an existing record before each insert.
//   - If the answer to a COMMIT is lost, the store looks up the outcome over another connection (commit.go). Update
//     returns when the outcome is known. If the outcome is not known after ten minutes, or when the store is closed,
//     Update returns ErrCommitUnknown.
//   - If a connection is lost before the COMMIT, the closure runs again. While the database can't be reached, calls
//     fail with ErrUnavailable, and nothing is written. If the disk of the server is full, the error is ErrFull. The
//     store works again without a restart once the database can be reached, or the disk has free space.
//   - If another program has changed a row, the row does not match its checksum. A changed audit record does not match
//     its hash. A read of such a row returns a *store.DamagedError that names the row. Lists of independent rows skip
//     the row and report it (checksum.go). Timers and counters have no checksums.
//   - The bot's database role can't change audit records (roles.go).
//   - Hold reserves the database for one process, or for several replicas, with an advisory lock.
//
// A statement may take at most 30 s, and may wait at most 10 s for a lock. A transaction may be idle for at most 60 s.
// Errors never contain the password.
//
// # The tables
//
// The tables are in one schema. The schema is countersign, or the search_path in the address. The files
// migrations/*.sql make the tables, and explain the purpose of each table. docs/postgres.md describes the tables for
// administrators. Migrations are numbered. A migration can't be undone. Migrations run under an advisory lock, with
// pressly/goose. goose has three small dependencies. The alternative, tern, has about a dozen. Each migration states
// the oldest program version that can use the migrated tables (needs_program). So replicas of two versions can work at
// the same time. CONTRIBUTING.md explains how to write a migration.
//
// The row of a guarded record has the id, the version, and the record as JSON (store/record). Further columns are for
// lookups, for the order, and for due times. The values of these columns are derived from the record, and Check
// compares them with the record. The column born gives the order of creation. The JSON column has the type json,
// because json keeps the exact bytes. The type jsonb does not keep the exact bytes, and can't store U+0000.
//
// Texts sort by their bytes. PostgreSQL's type text can't store the byte 00. In a column, the byte 00 is stored as 01
// 01, and the byte 01 is stored as 01 02.
//
// A journal entry gets its number (leaf) when a head covers the entry. Entries without a leaf are ordered by the column
// "position". The value of this column comes from a sequence, so transactions of different chains do not wait for each
// other.
package postgres
