package yamldoc

import (
	"fmt"
	"strings"
)

// excerptWidth is how many characters of a long line are shown.
const excerptWidth = 100

// Excerpt returns the problem's text, the line of the file that the problem is about, and a mark below the exact
// position.
func (p Problem) Excerpt() string {
	if p.Line == 0 || p.Source == "" {
		return p.Error()
	}
	line, at := []rune(p.Source), max(p.Column-1, 0)
	at = min(at, len(line))
	if len(line) > excerptWidth {
		from := max(0, min(at-excerptWidth/2, len(line)-excerptWidth))
		line, at = line[from:from+excerptWidth], at-from
	}
	pad := []rune(strings.Repeat(" ", at))
	for i := range pad {
		if line[i] == '\t' {
			pad[i] = '\t'
		}
	}
	return fmt.Sprintf("%s\n%6d | %s\n       | %s^", p.Error(), p.Line, string(line), string(pad))
}

// Excerpts returns all problems, each with its line.
func (ps Problems) Excerpts() string {
	parts := make([]string, len(ps))
	for i, p := range ps {
		parts[i] = p.Excerpt()
	}
	return strings.Join(parts, "\n")
}
