// Package settings defines records in the store's settings that both the workflow and its views read: the pause, the
// card queues, the ratings of answers, and others. A Read function returns the value and the store's row of the
// setting. To change a setting, a transaction writes the row with the new value. If the store has no such row, the
// value is zero.
package settings
