// Package home draws a person's Home tab, and the lines of the lists on it: waiting items, past requests and grants. The
// command's answers use the same lines.
//
// The caller reads the content of a tab, and selects the pages (Paginate). A full tab stays within Slack's limit of
// blocks (PageRows). The package decides nothing about who sees which item.
package home
