// Package preview compiles the templates of previews. A preview is one sentence on an approver's card that says what a
// call would do.
//
// [Compile] takes a template in the syntax of text/template. The functions of templates write money, dates, lists and
// differences in the way people write them. docs/policy.md documents the functions.
//
// The package promises:
//
//   - A preview is one line of at most 600 characters, or an error. A value is never rounded or cut without saying so.
//   - The work of one run is limited by a count, and not by a clock. The limit holds for all arguments.
//   - A missing argument is an error, never a gap in the sentence.
package preview
