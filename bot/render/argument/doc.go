// Package argument lays out the arguments of a call for people, as a table or on one line. It also masks secret
// arguments, compares two versions of the arguments, changes single members of the stored JSON, and chooses the value
// that a person must type.
//
// Guarantees:
//
//   - The layout works on the stored bytes, omits nothing, and changes no number. No text can look like another
//     argument.
//   - A layout shows a note in place of each secret value. No other text can look like this note.
//   - Splice keeps the bytes of all other members.
//
// The package returns text and bytes. It makes no blocks.
package argument
