// Package audit reads, verifies and seals the history that the transitions of package approvers record.
//
// The history is in the store. The history consists of chains, a journal and signed heads. There is a chain of
// records for each request. The journal lists every record of all chains, and the heads cover the journal. The rules
// of the formats (hashes, links, trees, heads, proofs) are in package approvers. These files of package audit work
// with the history:
//
//   - sealer.go signs a head over the new records. head_shipper.go copies the heads to a [HeadTarget] outside of the
//     store: a file (head_file.go) or syslog (head_syslog.go). key_file.go has the keys.
//   - verify.go, with verify_rows.go, verify_journal.go, verify_heads.go and verify_stored.go, compares the chains, the
//     journal and the heads with each other, and with heads kept elsewhere (kept_heads.go). older_store.go detects that
//     a store lacks heads that it once had.
//   - read.go, filter.go, list.go and export.go read the records for people and other systems. evidence.go collects
//     a request's whole story, and package evidence renders the story as a page. decisions.go and observed.go compute
//     statistics.
//   - activity.go and activity_chain.go compute the figures of a report from the records, in one pass.
//
// Reading skips damaged rows. After all other rows were read, the reading functions return an [Unread] error that
// lists the damaged rows. Verification reports damage as a fault.
//
// The package never changes a record. The package writes only heads to the store, through the [Signer]. Except for the
// evidence page, the package returns texts that people wrote only if the caller asks for them.
package audit
