package preview

import (
	"fmt"
	"strings"
	"unicode/utf8"
)

// The markers of a patch, in the format of the tool apply_patch of coding agents.
const (
	patchBegin  = "*** Begin Patch"
	patchEnd    = "*** End Patch"
	patchAdd    = "*** Add File: "
	patchDelete = "*** Delete File: "
	patchUpdate = "*** Update File: "
	patchMove   = "*** Move to: "
)

// filePatch is the part of a patch about one file.
type filePatch struct {
	marker, path string
	moved        string // the new path
	edit
}

// patch describes what a patch does to each file: "a.go: 1 line added: + x := 2; deletes b.go". If the text is too long,
// patch leaves out the lines, and then the last files. A text that is not such a patch is quoted.
func patch(v any) (string, error) {
	text := fmt.Sprint(v)
	files := filesIn(text)
	if len(files) == 0 {
		start, err := short(text, maxDiff)
		if err != nil {
			return "", err
		}
		return quote(start)
	}
	var brief []string
	for _, withLines := range []bool{true, false} {
		brief = nil
		for _, f := range files {
			brief = append(brief, f.says(withLines))
		}
		if said := strings.Join(brief, "; "); utf8.RuneCountInString(said) <= maxDiff {
			return said, nil
		}
	}
	return theFirst(brief, len(brief)), nil
}

// says describes the change of one file.
func (f filePatch) says(withLines bool) string {
	name, counts := pathPiece(f.path), f.counts()
	switch f.marker {
	case patchDelete:
		return "deletes " + name
	case patchAdd:
		name = "new file " + name
	}
	if f.moved != "" {
		name = "moves " + name + " to " + pathPiece(f.moved)
	}
	if counts == "" {
		return name
	}
	if withLines {
		counts += ": " + f.lines()
	}
	return name + ": " + counts
}

// filesIn returns the parts of a patch. If the text has anything that is not a part of a patch, filesIn returns nil.
func filesIn(text string) (files []filePatch) {
	all := splitLines(strings.TrimSpace(text))
	if len(all) < 2 || strings.TrimSpace(all[0]) != patchBegin || strings.TrimSpace(all[len(all)-1]) != patchEnd {
		return nil
	}
	for _, line := range all[1 : len(all)-1] {
		if marker, path := markerOf(line); marker != "" {
			files = append(files, filePatch{marker: marker, path: path})
			continue
		}
		if len(files) == 0 || !files[len(files)-1].add(line) {
			return nil
		}
	}
	return files
}

// markerOf returns the marker that begins the part about a file, and the file's path.
func markerOf(line string) (marker, path string) {
	for _, marker := range []string{patchAdd, patchDelete, patchUpdate} {
		if path, ok := strings.CutPrefix(line, marker); ok {
			return marker, strings.TrimSpace(path)
		}
	}
	return "", ""
}

// add adds a line to the part about a file. It returns false if the line can't belong to the part.
func (f *filePatch) add(line string) bool {
	to, moves := strings.CutPrefix(line, patchMove)
	switch {
	case f.marker == patchDelete:
		return strings.TrimSpace(line) == ""
	case strings.HasPrefix(line, "+"):
		f.come = append(f.come, line[1:])
	case f.marker == patchAdd:
		return strings.TrimSpace(line) == ""
	case moves && f.moved == "" && f.counts() == "":
		f.moved = strings.TrimSpace(to)
	case strings.HasPrefix(line, "-"):
		f.gone = append(f.gone, line[1:])
	default: // a line that stays, or a position in the file
		return line == "" || strings.HasPrefix(line, " ") || strings.HasPrefix(line, "@@") || strings.TrimSpace(line) == "*** End of File"
	}
	return true
}
