// Package settings has the records that the workflow keeps under keys of the store's settings and that views read, too:
// whether everything is paused, the queues of cards, and what people thought of answers. A Read function returns the
// value with its row, to be written again; a missing row is the zero value.
package settings
