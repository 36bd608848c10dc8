// Package auditcmd has the commands about the history: "countersign audit list", "export" and "evidence" (audit.go),
// "pace" (pace.go), "report" (report.go), "verify" (verify.go), "erase" (erase.go) and "key" (key.go).
//
// The package owns the flags, the texts and the exit codes of these commands, and the keys that they trust. Package
// audit reads and verifies the history. Package auditreport writes the report.
//
// Each command that reads or changes the history is a task. The running bot gets these tasks from [Tasks]. Only "erase"
// changes the store. Only "key --new" changes the key file. The package never seals the history: the bot does that.
package auditcmd
