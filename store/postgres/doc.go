// Package postgres keeps Countersign's durable state in a PostgreSQL database. The package implements the contract of
// package store over jackc/pgx, and has these properties:
//   - Transactions are serializable: the result is as if the closures of all processes had run one after the other.
//     Several rules read rows that they do not write: a budget sums counters, a claim reads the pause, and a call looks
//     for a grant. With repeatable read, each of two such closures could be right alone, but wrong together. Each rule
//     would then need a lock, and a programmer could forget the lock. The price of serializable transactions is that a
//     closure may run again (40001, 40P01), sometimes only because rows are neighbours in an index. From the fourth run
//     on, a closure runs alone in its process.
//   - A View is one repeatable-read snapshot, read only. A View takes no locks.
//   - A transaction sends nothing before its first read. Writes are gathered, and sent together with the COMMIT in one
//     round trip. All transactions send their writes in the same order, so they do not deadlock. If a read depends on
//     gathered writes, the transaction makes these writes in a savepoint, and rolls back to the savepoint in the same
//     round trip. Only statements that change many rows, such as the statements of an erasure, are sent immediately,
//     after the gathered writes. From then on, the transaction waits for a lock for 0.1 s at most, and then runs again.
//   - A record that was read or written is not read again. Records that a transaction is likely to read next are read
//     together with the request or the execution (together.go).
//   - Tables and indexes have room for later versions and later rows (migrations/00009_room.sql), because otherwise
//     most simultaneous transactions would write to index pages that other transactions have read, and would run again.
//   - A new record is assumed to be absent, because ids are random. If the record exists, the insert fails, and the
//     transaction is rolled back. The closure then runs again, and looks for the record first.
//   - If the answer of a commit was lost, the outcome is looked up over another connection (commit.go). Update returns
//     once the outcome is known. If the outcome can't be looked up for ten minutes, or until Close, Update returns
//     ErrCommitUnknown.
//   - If a connection is lost before the COMMIT, the closure runs again. While the database is away, calls fail with
//     ErrUnavailable, and nothing is written. If the disk of the server is full, the error is ErrFull. In both cases,
//     no restart is needed.
//   - If another program has changed a row, the row does not match its checksum, or its hash in the history. Such a row
//     is never read as valid. A reader that needs the row gets a *store.DamagedError that names the row. Lists of
//     independent rows skip the row and report it (checksum.go). Timers and counters have no checksums.
//   - The bot's role can't change the history (roles.go).
//   - Hold keeps other processes away from the database, with an advisory lock.
//
// A statement may take 30 s, and may wait 10 s for a lock. A transaction may be idle for 60 s. The password is never
// part of an error.
//
// # The tables
//
// The tables are in one schema: countersign, or the search_path of the address. The files migrations/*.sql make the
// tables, and say what each table is for. docs/postgres.md describes the tables for administrators. Migrations are
// numbered, and only go forward. Migrations run under an advisory lock, with pressly/goose. That library brings three
// small modules, while tern would bring a dozen with its templates. Each migration names the oldest program that can
// use the tables after it (needs_program). So replicas of two versions can work side by side. CONTRIBUTING.md says how
// to write a migration.
//
// A guarded record has its id, its version, the record as JSON (store/record), and columns for lookups, order and due
// times. The columns follow from the record, and Check compares them. born is the order of creation. The column of the
// JSON has the type json, because json keeps the exact bytes. The type jsonb does not keep the bytes, and has no
// U+0000.
//
// Texts sort by their bytes. PostgreSQL's text has no byte 00. In a column, a byte 00 is written as 01 01, and a byte
// 01 is written as 01 02.
//
// A journal entry gets its leaf when a head covers the entry. Before that, the column position gives the order of the
// entries. position comes from a sequence, so transactions of different chains do not wait for each other.
package postgres
