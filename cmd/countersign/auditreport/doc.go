// Package auditreport writes the activity figures of a period, for people who are responsible for the approvals. The
// formats are text, CSV, and an HTML page. The page loads nothing, runs no scripts, and can be printed. The figures
// come from an [audit.Activity].
package auditreport
