// Package preview compiles the templates of previews. A preview is one sentence on an approver's card that describes a
// call's effect.
//
// [Compile] takes a template in the syntax of text/template. The template functions write money, dates, lists and
// differences as people write them. docs/policy.md documents the functions.
//
// The package guarantees:
//
//   - A preview is one line of at most 600 characters, or an error. If a value is rounded or cut, the text shows this.
//   - The work of one run is limited by a count, and not by a clock. The limit holds for all arguments.
//   - A missing argument is an error, never a gap in the sentence.
package preview
