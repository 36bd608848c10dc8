// Package bolt keeps Countersign's durable state in one file on disk, with bbolt. The package implements the contract
// of package store, and adds the following:
//   - Concurrent writers share commits, and a lone writer never waits for others. One goroutine runs the queued
//     closures in one transaction. The goroutine commits when the queue is empty, or after 256 closures, and then
//     begins the next transaction.
//   - Closures run one at a time, on the store's goroutine. If a closure fails, panics or ends the goroutine, the store
//     undoes the closure's writes before the next closure runs. The other closures of the same commit are not affected.
//     A panic or a runtime.Goexit of a closure is repeated in the goroutine that called Update.
//   - Earlier closures may have written rows that are not committed yet. If a closure reads such rows, Update returns
//     only after they are committed, even if the closure fails or writes nothing.
//   - On a full disk, a closure fails with ErrFull if its writes do not fit. The other closures succeed. Any other
//     error of a commit stops the store. Every later call then fails with ErrCommitUnknown until the file is opened
//     again.
//   - After the file was removed, renamed or replaced, writes fail with ErrMoved until the same file is back at its
//     path. Reads and copies continue. If another program wrote to the file, the store stops (ErrDamaged). The store
//     makes these checks before every commit. A call of the method InPlace makes the same checks.
//   - After Open, everything that is read is durable, even if the previous process was killed during a commit.
//   - Open upgrades a store of an older version, in transactions that each fit in memory. An interrupted upgrade
//     continues at the next start. Older programs don't open the upgraded store.
//   - Only one process uses the store at a time. Open never waits for another process, and never leaves a partial file.
//   - The checksum of a row detects that the row's bytes have changed. A read of such a damaged row returns a
//     *store.DamagedError that names the row. Lists of independent rows skip the row and report it. A page that can't
//     be read fails only the closures that touch it.
//   - Open examines a file of up to 256 MiB before it writes anything to the file. Open checks the position of every
//     element on its page, the order of the keys, and every checksum. Open also checks that every page is either used
//     once or free. If the file is damaged, Open builds a new file from the readable rows, and keeps the damaged file
//     as STORE.damaged-TIME. Indexes, timers and the journal are rebuilt from other rows that hold the same data. If a
//     row is lost, Open writes a mark under the row's key: a value with an inverted checksum. Every read of this key
//     then fails. A file above 256 MiB is examined while it is in use. If this examination finds damage, the next Open
//     examines and repairs the file.
//
// A View may see the writes of a commit slightly before Update returns to the closure's caller.
//
// # The file
//
// Keys consist of parts. Text ends with the bytes 00 01, and a byte 00 within a text is written as 00 ff. So keys sort
// in the order of their parts, and no text can be confused with the next part. Numbers are eight bytes, big-endian.
// Times are microseconds since 1970, with the sign bit flipped so that they sort.
//
// The value of a row in a bucket of records is a header and the record as JSON. The header holds the record's version,
// its birth number, and the buckets and keys of the record's index rows. Birth numbers count the records of a bucket in
// the order of creation. All lengths are unsigned varints. In JSON, times are RFC 3339 in UTC to the microsecond. Raw
// JSON within a record is kept as base64 of its exact bytes, because signatures cover bytes. In a text with invalid
// UTF-8, U+FFFD replaces the invalid bytes. A key with invalid UTF-8 is refused.
//
// Every value ends with a CRC-32C (four bytes, big-endian). The CRC covers the bucket's number (one byte), the key's
// length (four bytes), the key and the rest of the value. Only values of the bucket countersign have no CRC. An
// inverted CRC marks a row that is known to be damaged.
//
//	bucket              key                                 value
//
//	countersign         "schema"                            the version of this layout, in decimal
//	countersign         "schema_sum"                        the version again, with a checksum
//	countersign         "checksums"                         while an upgrade adds checksums: the bucket's number and the key of the next row without a checksum
//	countersign         "examine"                           set if damage was found while the store was in use: the next start examines the file
//	countersign         "upgrading"                         during an upgrade: the version before the upgrade
//	countersign         "copying"                           in an incomplete copy: the progress of the copy
//
//	conversations       id                                  header, store.Conversation
//	conversation_place  place, birth                        conversation id; the last one is the current one
//	conversation_last   last message, id                    conversation id
//	messages            conversation, seq                   store.Message as JSON
//	turns               id                                  header, approvers.Turn
//	turn_conversation   conversation, id                    turn id; likewise request_conversation and execution_conversation
//	calls               id                                  header, store.Call
//	call_turn           turn, step, index, birth            call id
//	requests            id                                  header, approvers.Request
//	request_open        created, id                         request id; pending and approved ones only
//	request_person      person, created, id                 request id; one row for each person who made, decided or closed it
//	executions          id                                  header, approvers.Execution
//	elicitations        id                                  header, approvers.Elicitation
//	elicitation_execution  execution, birth                 elicitation id
//	files               execution, index                    store.File as JSON
//	file_data           execution, index                    the file's bytes
//	timers              kind, due, ref                      store.Timer as JSON
//	timer_ref           kind, ref                           due
//	inbox               id                                  header, store.Inbox
//	inbox_unhandled     received, id                        inbox id
//	inbox_handled       handled, id                         inbox id
//	surfaces            id                                  header, store.OutboxMessage
//	surface_ref         ref, birth                          outbox message id
//	surface_message     channel, ts, birth                  outbox message id; the last one is current
//	renderings          outbox message, post                store.Rendering as JSON
//	audit               chain, seq                          leaf, hash, bytes of the approvers.AuditRecord
//	audit_payloads      chain, seq                          bytes of the approvers.AuditPayload
//	audit_journal       leaf                                chain, seq, hash; without gaps, in the order of the commits
//	audit_heads         number                              size, and the signed note
//	settings            key                                 header, store.Setting
//	tallies             key, at, id                         how much the event counts (store.Counter.N), as a number
//	tally_time          at, key, id                         empty; the oldest come first
//	grants              id                                  header, approvers.Grant
//	grant_open          tool, birth                         grant id; open ones only, each listed twice: under its tool, and under an empty tool for listing them all
//	absences            person                              header, approvers.Absence
//	set_aside           bucket, and the row's key           the damaged value; when retention finds the row, an empty part and the time are put before the key
//
// Values in the audit buckets are the exact bytes that the hashes cover.
//
// A value that begins with one of the following bytes is compressed. The method is zstd with a dictionary, except for
// the byte 5. See pack.
//
//	3  in messages, renderings and audit_payloads; a few programs of version 8 wrote it in audit, too, where the leaf and
//	   the hash follow uncompressed
//	5  in audit: the leaf and the hash follow, then the record in the short encoding; see shorten
//	4  in renderings: the JSON without its text, a line break, and the bytes of the text
//	0  in buckets of records: the version and the birth number follow uncompressed, then the rest of the record's value
//
// Programs of version 7 compressed values of renderings and audit_payloads with flate. Such a value begins with 1, or
// with 2 if it is a rendering in the form that begins with 4 today. Values below 256 bytes are not compressed. A record
// of a bucket of records is compressed only when it is closed.
//
// Version 1 had a bucket with the name runs instead of the bucket tallies, and no grants and absences. Its renderings
// had "digest" and "whole" instead of "shows". Version 2 had the audit as JSON, but had no journal and no heads.
// Version 2 also had no indexes by conversation and by the last message. Version 3 had no index of requests by person.
// Version 4 had no elicitations and files. Version 5 had no checksums and no bucket set_aside. Version 6 had no
// compressed values. Version 7 had no values compressed with zstd. Version 8 had no requests of callers, and a program
// of version 8 would drop the fields of such a request. Version 9 had no audit records in the short encoding.
package bolt
