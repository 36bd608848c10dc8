// Package yamldoc reads a YAML file that a person wrote by hand, and reports the mistakes in it.
//
// [Parse] turns the file into a [Value]. A Value is a mapping, a list, a text, a number, or true or false, with its
// position in the file. The methods of Value and [Fields] read one value as the type that the caller needs, within
// given bounds. If a value does not fit, a [Problem] is added to the [Document]. A Problem has a line, a column, a
// message and a hint on what to write instead. After a problem, the reading continues, so that all problems are found
// together. The reading ends only if no value can be read, for example because of a syntax error.
//
// The reader is strict. A key that is given twice is a problem. A key that is not in the list for [Value.Fields] is
// also a problem. Aliases and merges are limited, so a small file never becomes a large value.
//
// The package does not depend on the meaning of policies. The package also has functions for the texts of problems:
// quoting, suggestions ([DidYouMean]), lists, counts and times.
package yamldoc
