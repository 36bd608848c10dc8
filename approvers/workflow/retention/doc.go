// Package retention erases stored data. Enforce removes data that is older than the policy's retention times. Erase
// erases the texts of one call when an operator asks for it.
//
// The package has the rules about the records that can be erased, and about the parts of them that remain. The package
// guarantees these invariants:
//
//   - Work that has not ended stays, whatever its age. Examples are a turn, a run whose outcome is unknown, a grant in
//     force, and an absence.
//   - The history still verifies. If a text is erased, its audit record and its hash remain. If the records are old
//     enough, the whole chain is deleted.
//   - Each erasure of an audit text and each deletion of a chain is recorded in the audit, in the same transaction.
//   - A damaged record does not stop Enforce. Enforce keeps the data to which the damaged record belongs, and returns
//     store.ErrDamaged.
//
// Erase is one transaction. Enforce is a series of short transactions, because other commits wait for each of them. If
// the process stops between two transactions, the next Enforce continues.
//
// The package never decides, starts or ends a call, and never deletes a message in Slack or a backup. Package workflow
// does not depend on this package: retention uses the workflow's transactions (workflow.Workflow.Update), and cmd calls
// retention. The tests are in the folder of package workflow (retention_*_test.go), because they use its harness.
//
// age.go has Enforce, for conversations and for the audit. turns.go erases the old turns of conversations that stay. people.go has the parts of Enforce for grants, absences and
// Home tabs. erase.go has Erase.
package retention
