// Package audit reads, verifies and seals the history that the transitions of package approvers record.
//
// The history lies in the store: a chain of records for each request, a journal that lists every record of all chains,
// and signed heads over the journal. The rules of that format (hashes, links, trees, heads, proofs) are in package
// approvers. This package owns what is done with it:
//
//   - sealer.go signs a head over what was recorded since the last one. head_shipper.go copies the heads to a
//     [HeadTarget] outside of the store: a file (head_file.go) or syslog (head_syslog.go). key_file.go has the keys.
//   - verify.go, with verify_rows.go, verify_journal.go, verify_heads.go and verify_stored.go, checks everything
//     against everything else, and against heads that were kept elsewhere (kept_heads.go). older_store.go finds a store that
//     lacks the newest of its heads.
//   - read.go, filter.go, list.go and export.go read the records for people and other systems. evidence.go writes a
//     request's whole story as a page (package evidence draws it). decisions.go and observed.go sum up.
//
// Reading goes past damaged rows: the sound ones are returned, and the damaged ones are in an [Unread], which is the
// error when everything else is done. Verification reports damage as a fault.
//
// Nothing here changes a record, and nothing is written to the store except the heads, by the [Signer]. Texts that
// people wrote are only returned where the caller asks for payloads.
package audit
