// Package bolt keeps Countersign's durable state in one file on disk, with bbolt. It implements the contract of package
// store; what that package promises holds here and is not repeated.
//
// It promises besides:
//
//   - Concurrent writers share commits, and a lone writer waits for nobody: one goroutine drains the queue of waiting
//     closures into one transaction, commits it as soon as the queue is empty, and starts again.
//   - Closures run one at a time, on the store's goroutine. What one of them wrote is taken back when it fails, panics
//     or ends the goroutine, before the next one runs: its neighbours in the commit notice nothing. The panic, and the end, are its caller's.
//   - A closure that fails, or writes nothing, waits for the commit of the neighbours whose writes it saw.
//   - A full disk fails the closures that did not fit, with ErrFull, and nothing else. Any other error of a commit stops the
//     store: every later call fails with ErrCommitUnknown, until the file is opened again.
//   - A store of an older version is upgraded when it is opened, in transactions that each fit in memory. An upgrade that was
//     interrupted goes on the next time; an older program does not open the store from then on.
//   - One process at a time. Opening never waits for another one, and never leaves a half-made file.
//
// A View may see a commit an instant before Update has returned for it.
//
// # The file
//
// Keys are made of parts. Text is ended by the bytes 00 01, and a byte 00 within it is written 00 ff, so that keys sort
// like their parts and no text can reach into the next part. Numbers are eight bytes, big-endian; times are
// microseconds since 1970, with the sign bit flipped so that they sort.
//
// Values of record buckets are a header and the record as JSON. The header holds the record's version, its number of
// birth (rising within the bucket), and the rows that it has in index buckets; all lengths are unsigned varints. In
// JSON, times are RFC 3339 in UTC to the microsecond. Raw JSON within a record is kept as base64 of its exact bytes, because what was
// signed is bytes. Text that is not valid UTF-8 is stored with U+FFFD in place of what is wrong; a key part that is not is refused.
//
//	bucket              key                                   value
//
//	countersign         "schema"                              the version of this layout, in decimal
//	countersign         "upgrading"                           during an upgrade: the version that it comes from
//
//	conversations       id                                    header, store.Conversation
//	conversation_place  place, birth                          conversation id; the last one is the current one
//	conversation_last   last message, id                      conversation id
//	messages            conversation, seq                     store.Message as JSON
//	turns               id                                    header, approvers.Turn
//	turn_conversation   conversation, id                      turn id; likewise request_conversation and execution_conversation
//	calls               id                                    header, store.Call
//	call_turn           turn, step, index, birth              call id
//	requests            id                                    header, approvers.Request
//	request_open        created, id                           request id; pending and approved ones only
//	request_person      person, created, id                   request id; for each who asked for it or had a say in it
//	executions          id                                    header, approvers.Execution
//	elicitations        id                                    header, approvers.Elicitation
//	elicitation_execution  execution, birth                   elicitation id
//	files               execution, index                      store.File as JSON
//	file_data           execution, index                      the file's bytes
//	timers              kind, due, ref                        store.Timer as JSON
//	timer_ref           kind, ref                             due
//	inbox               id                                    header, store.Inbox
//	inbox_unhandled     received, id                          inbox id
//	inbox_handled       handled, id                           inbox id
//	surfaces            id                                    header, store.Surface
//	surface_ref         ref, birth                            surface id
//	surface_message     channel, ts, birth                    surface id; the last one is the message's
//	renderings          surface, post                         store.Rendering as JSON
//	audit               chain, seq                            leaf, hash, bytes of the approvers.AuditRecord
//	audit_payloads      chain, seq                            bytes of the approvers.AuditPayload
//	audit_journal       leaf                                  chain, seq, hash; without gaps, in the order of the commits
//	audit_heads         number                                size, and the signed note
//	settings            key                                   header, store.Setting
//	tallies             key, at, id                           what it counts for, as a number
//	tally_time          at, key, id                           empty; the oldest come first
//	grants              id                                    header, approvers.Grant
//	grant_open          tool, birth                           grant id; open ones only. With an empty tool: those of all tools
//	absences            person                                header, approvers.Absence
//
// Values of the audit are the very bytes that its hashes are made over: what is verified is what lies there.
//
// Version 1 had a bucket runs in the place of tallies, its renderings had "digest" and "whole" in the place of "shows", and grants
// and absences were not there. Version 2 had the audit as JSON, no journal and no heads, and lacked the indexes by conversation and by the last
// message. Version 3 lacked the index of requests by person, and version 4 the elicitations and the files.
package bolt
