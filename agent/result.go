package agent

import (
	"fmt"
	"strings"
	"unicode/utf8"

	"countersign/approvers"
	"countersign/approvers/desk"
)

// told is a run's result as the model is given it, with what is kept beside it. Of a long one the model is given the beginning, with how to read on, and people have all of it as a
// file. Nothing of it is out of reach but what is over the limit, and that is said.
func (a *Agent) told(e approvers.Execution, result string, files []desk.File) (string, []desk.File) {
	result = strings.ToValidUTF8(result, "\uFFFD")
	size := len(result)
	if size > a.MaxResult {
		result = head(result, a.MaxResult)
	}
	said := result
	if len(result) > a.ResultPart {
		said = head(result, a.ResultPart)
		files = append([]desk.File{{Name: desk.WholeName(e.Tool, result), Type: "text/plain", Data: []byte(result), Whole: true}}, files...)
	}
	if len(said) < size {
		said += "\n" + a.cutNote(e.ID, len(said), len(result), size)
	}
	var lines []string
	for _, f := range files {
		if f.Whole {
			continue
		}
		line := fmt.Sprintf("[%s, %s, %d bytes: attached for the people in the thread]", f.Name, f.Type, len(f.Data))
		if !strings.Contains(said, line) {
			lines = append(lines, line)
		}
	}
	if len(lines) > 0 {
		said = strings.TrimPrefix(said+"\n"+strings.Join(lines, "\n"), "\n")
	}
	return said, files
}

// cutNote says how much of a result is missing, and how to come by it.
func (a *Agent) cutNote(execution string, said, kept, size int) string {
	if said == kept {
		return fmt.Sprintf("[cut: these are the first %d of %d bytes, and the rest was not kept, because a result may have %d; ask for less at once]", said, size, a.MaxResult)
	}
	note := fmt.Sprintf(`[cut: these are the first %d of %d bytes. The people have a file with it. Read on with %s: {"run":%q,"offset":%d}`, said, size, approvers.ToolReadResult, execution, said)
	if kept < size {
		note += fmt.Sprintf("; what comes after %d bytes was not kept, so ask for less at once if you need it", kept)
	}
	return note + "]"
}

// head is the beginning of a text, of at most n bytes, up to a character's border.
func head(s string, n int) string {
	if len(s) <= n {
		return s
	}
	for n > 0 && !utf8.RuneStart(s[n]) {
		n--
	}
	return s[:n]
}
