package main

import (
	"fmt"
	"io"
	"strings"
	"unicode/utf8"
)

// terminalWidth is how wide the doctor's lines are. Addresses are not cut.
const terminalWidth = 80

// writeWrapped writes a text behind a label. What does not fit goes on below, as far in as the text began.
func writeWrapped(w io.Writer, label, text string) {
	indent := strings.Repeat(" ", utf8.RuneCountInString(label))
	line := label
	for i, word := range strings.Fields(text) {
		switch {
		case i == 0:
			line += word
		case utf8.RuneCountInString(line)+1+utf8.RuneCountInString(word) > terminalWidth:
			fmt.Fprintln(w, line)
			line = indent + word
		default:
			line += " " + word
		}
	}
	fmt.Fprintln(w, line)
}
