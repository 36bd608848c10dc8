// Package evidence draws the page that an auditor reads: one request's whole story, from its audit chain alone.
//
// What the page says rests on the chain's records and their payloads, each of which is held against the hash that the chain commits to
// while the page is made. Nothing on it is taken from a live card or from anybody's memory. The page is one HTML file
// that loads nothing and runs nothing, and that prints.
package evidence
