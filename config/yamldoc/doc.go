// Package yamldoc reads a YAML file that a person wrote by hand, and says what is wrong with it.
//
// [Parse] turns the file into a [Value]: a mapping, a list, a text, a number, or true or false, with its place in the
// file. The methods of Value and [Fields] read one value as the type that is needed, within its bounds. A value that
// does not fit is reported to the value's [Document] as a [Problem], which has a line, a column, a message and a hint
// on what to write instead; reading then continues, so that all problems are found together. Only a syntax error ends
// the reading.
//
// The reader is strict. A key that is given twice and a key that [Value.Fields] does not know are problems; aliases and
// merges have bounds, so a small file never becomes a large value.
//
// The package knows nothing of policies. It also has the words that problems have in common: quoting, suggestions
// ([DidYouMean]), lists, counts and times.
package yamldoc
