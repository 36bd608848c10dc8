// Package postgres keeps Countersign's durable state in a PostgreSQL database. It implements the contract of package
// store over jackc/pgx, and adds:
//   - Transactions are serializable: the result is as if the closures of all processes had run one after the other.
//     Several rules read what they do not write: a budget sums counters, a claim reads the pause, a grant is looked
//     for. With repeatable read, two such closures could each be right alone and wrong together, and each rule would
//     need a lock that somebody can forget. The price is that a closure may run again (40001, 40P01), sometimes only
//     because rows are neighbours in an index. From the third time on it runs alone in its process.
//   - A View is one repeatable-read snapshot, read only. It takes no locks.
//   - Nothing is sent before the first read. Writes are gathered, and go with the COMMIT: one round trip. They go in one
//     order, so that transactions don't deadlock. A read that depends on gathered writes makes these in a savepoint, and
//     rolls back to it in the same round trip. Only statements that change many rows, such as those of an erasure, are
//     sent at once, after the gathered writes; from then on the transaction waits for a lock for 0.1 s at most, and then
//     runs again.
//   - A record that was read or written is not read again. What a transaction is likely to read next comes with the
//     request or the execution (together.go).
//   - Tables and indexes have room for later versions and later rows (migrations/00009_room.sql), because otherwise most
//     transactions of the same moment write to index pages that the others have read, and run again.
//   - A new record is assumed to be absent, because ids are random. If it is there, the insert fails, the
//     transaction is rolled back, and the closure runs again and looks first.
//   - A commit whose answer was lost is looked up over another connection (commit.go). Update returns once the outcome
//     is known. It returns ErrCommitUnknown if the database can't be asked for ten minutes, or until Close.
//   - If a connection is lost before the COMMIT, the closure runs again. While the database is away, calls fail with
//     ErrUnavailable, and nothing is written; a full disk of the server is ErrFull. No restart is needed.
//   - A row that was changed by anything but the program does not match its checksum, or its hash in the history. It is
//     never read as valid: a reader that needs it gets a *store.DamagedError that names it, and lists of independent
//     rows skip and report it (checksum.go). Timers and counters have no checksums.
//   - The bot's role can't change the history (roles.go).
//   - Hold keeps other processes away, with an advisory lock.
//
// Statements may take 30 s, waiting for a lock 10 s, and a transaction may be idle for 60 s. The password is never part
// of an error.
//
// # The tables
//
// The tables are in one schema: countersign, or the search_path of the address. migrations/*.sql makes them and says
// what each is for; docs/postgres.md describes them for administrators. Migrations are numbered and only go forward,
// under an advisory lock (pressly/goose, which brings three small modules; tern would bring a dozen with its
// templates). Each says the oldest program that works on the tables after it (needs_program), so that replicas of two
// versions work side by side; CONTRIBUTING.md says how to write one.
//
// A guarded record has its id, its version, the record as JSON (store/record), and columns for lookups, order and due
// times. The columns follow from the record, and Check compares them. born is the order of creation. The JSON is kept
// as text (type json), not jsonb, because its exact bytes are kept, and because jsonb has no U+0000.
//
// Texts sort by their bytes. PostgreSQL's text has no byte 00. In a column it is written 01 01, and a byte 01 is
// written 01 02.
//
// The journal's entries get their leaf when a head covers them. Before that, position gives their order. It is a
// sequence, so that transactions of different chains don't wait for each other.
package postgres
