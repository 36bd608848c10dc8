// Package auditreport writes the figures of a time for people who answer for the approvals: as text, as CSV, and as an
// HTML page that loads nothing, runs nothing, and can be printed. The figures are an [audit.Activity].
package auditreport
