// Package settings defines records in the store's settings that both the workflow and its views read: the pause, the
// card queues, the ratings of answers, and others. A Read function returns the value and its row. The row is needed to
// write back a changed value. If the row is missing, the value is zero.
package settings
