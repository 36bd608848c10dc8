// Package settings defines records in the store's settings that package workflow and package view read. For example,
// these are the pause, the card queues, and the ratings of answers. A Read function returns the value and the store's
// row of the setting. To change a setting, a transaction writes the row with the new value. If the store does not have
// the row, the value is zero.
package settings
