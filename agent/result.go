package agent

import (
	"fmt"
	"strings"
	"unicode/utf8"

	"countersign/approvers"
	"countersign/approvers/workflow"
)

// told returns a run's result in the form for the model, and the files to store. If the result is long, the model
// receives the beginning of the result and a note on how to read the rest. People receive the whole result as a file.
// Only bytes beyond the limit MaxResult are lost. If bytes are lost, the note says so.
func (a *Agent) told(e approvers.Execution, result string, files []workflow.File) (string, []workflow.File) {
	result = strings.ToValidUTF8(result, "\uFFFD")
	size := len(result)
	if size > a.MaxResult {
		result = head(result, a.MaxResult)
	}
	said := result
	if len(result) > a.ResultPart {
		said = head(result, a.ResultPart)
		files = append([]workflow.File{{Name: workflow.WholeName(e.Tool, result), Type: "text/plain", Data: []byte(result), Whole: true}}, files...)
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

// cutNote returns a note that says how much of a result the model does not see, and how to read the rest.
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

// head returns at most the first n bytes of a text, without splitting a character.
func head(s string, n int) string {
	if len(s) <= n {
		return s
	}
	for n > 0 && !utf8.RuneStart(s[n]) {
		n--
	}
	return s[:n]
}
