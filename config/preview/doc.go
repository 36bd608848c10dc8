// Package preview compiles the templates of previews: one sentence on an approver's card that says what a call would
// do.
//
// [Compile] takes a template in the syntax of text/template. Its functions write money, dates, lists and differences
// the way people write them; docs/policy.md documents the functions.
//
// It promises:
//
//   - A preview is one line of at most 600 characters, or an error. A value is never rounded or cut without saying so.
//   - The work of one run is limited by a count, not by a clock, whatever the arguments are.
//   - A missing argument is an error, never a gap in the sentence.
package preview
