package doctor

import (
	"fmt"
	"io"
	"strings"
	"unicode/utf8"
)

// terminalWidth is the width of the printed lines. Words such as addresses are not broken.
const terminalWidth = 80

// writeWrapped prints a text after a label. Lines after the first are indented to align with the text.
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
