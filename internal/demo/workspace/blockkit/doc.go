// Package blockkit implements the rules of Slack's Block Kit. CheckBlocks and CheckView report the problems for which
// Slack would refuse blocks or views, in Slack's words. NewState, Choose and Incomplete behave like Slack's client when
// a person fills in inputs.
//
// Blocks are decoded JSON, with numbers as json.Number. Checked blocks may be stored and shared. Only AssignIDs changes
// blocks, before they are stored.
//
// Some kinds of blocks (see blockRules) are accepted without checks of their fields, and the page shows only their
// text. The bot may not use these kinds, and a test of the page enforces this rule.
//
// The tests of package workspace try every limit and every rule through Slack's methods.
package blockkit
