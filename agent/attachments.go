package agent

import (
	"errors"
	"fmt"
	"mime"
	"net/http"
	"path"
	"strings"
	"sync"
	"unicode"
	"unicode/utf8"

	"countersign/approvers/workflow"
)

// Limits on the files of a run.
const (
	MaxFile      = 5 << 20 // bytes of one file
	MaxFiles     = 10
	MaxFilesSize = 10 << 20 // bytes of all files of a run
)

// ErrFile means that a file can't be attached to a result. The wrapping error gives the reason, in words for the model.
var ErrFile = errors.New("the file was not attached")

// attachments collects the files of a run. attachments is safe for concurrent use.
type attachments struct {
	mu    sync.Mutex
	files []workflow.File
	size  int
	over  bool
}

// attach adds a file. The added file gets a readable name (see fileName) and a media type (see kindOf).
func (l *attachments) attach(f File) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case l.over:
		return fmt.Errorf("%w: the run is over", ErrFile)
	case len(f.Data) == 0:
		return fmt.Errorf("%w: it is empty", ErrFile)
	case len(f.Data) > MaxFile:
		return fmt.Errorf("%w: it has %d bytes, and the limit is %d; make it smaller, or return a link to it", ErrFile, len(f.Data), MaxFile)
	case len(l.files) == MaxFiles:
		return fmt.Errorf("%w: a run may attach at most %d files; combine several into one", ErrFile, MaxFiles)
	case l.size+len(f.Data) > MaxFilesSize:
		return fmt.Errorf("%w: the files of the run would have %d bytes together, and the limit is %d", ErrFile, l.size+len(f.Data), MaxFilesSize)
	}
	l.size += len(f.Data)
	kind := kindOf(f)
	l.files = append(l.files, workflow.File{Name: fileName(f.Name, kind, len(l.files)+1), Type: kind, Data: append([]byte(nil), f.Data...)})
	return nil
}

// take returns the collected files. After take, attach refuses every file.
func (l *attachments) take() []workflow.File {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.over = true
	return l.files
}

// kindOf returns a file's media type. If the declared type is malformed or too long, or if the bytes clearly have
// another type, kindOf returns the type of the bytes. In all other cases, it returns the declared type.
func kindOf(f File) string {
	said, _, err := mime.ParseMediaType(f.Type)
	is, _, _ := mime.ParseMediaType(http.DetectContentType(f.Data))
	if is == "text/plain" && !utf8.Valid(f.Data) {
		is = "application/octet-stream"
	}
	if err != nil || len(f.Type) > 100 {
		return is
	}
	written := strings.HasSuffix(said, "+xml") // the bytes of an image in an XML format are text
	if of := family(said); of != "" && of != family(is) && !written && is != "application/octet-stream" && !isSound(said, is) {
		return is
	}
	return said
}

// family returns "image", "audio" or "video" for media types with these prefixes, and "application/pdf" for PDF. For
// any other media type, family returns "".
func family(kind string) string {
	major, _, _ := strings.Cut(kind, "/")
	switch {
	case major == "image", major == "audio", major == "video":
		return major
	case kind == "application/pdf":
		return kind
	}
	return ""
}

// isSound reports whether a file with this declared media type and this detected media type can be a sound or video
// recording. The detected type is the type of the container format, which often differs from the declared type.
func isSound(said, is string) bool {
	return (strings.HasPrefix(said, "audio/") || strings.HasPrefix(said, "video/")) && (strings.HasPrefix(is, "audio/") || strings.HasPrefix(is, "video/") || is == "application/ogg")
}

// maxFileName is the maximum length of a file's name, in characters.
const maxFileName = 100

// endings has the file extensions of generated names such as file-1.png, by media type.
var endings = map[string]string{
	"image/png": ".png", "image/jpeg": ".jpg", "image/gif": ".gif", "image/webp": ".webp", "audio/wave": ".wav", "audio/wav": ".wav", "audio/mpeg": ".mp3",
	"application/pdf": ".pdf", "application/json": ".json", "text/plain": ".txt", "text/csv": ".csv", "text/html": ".html", "application/zip": ".zip",
}

// fileName returns a file's name for people. The name has no folders and no invisible characters. If the name is too
// long, fileName removes its middle, and keeps its end, because a hidden extension could mislead people.
func fileName(said, kind string, number int) string {
	said = path.Base(strings.ReplaceAll(strings.ToValidUTF8(said, "_"), "\\", "/"))
	var out []rune
	for _, r := range said {
		switch {
		case strings.ContainsRune(`<>&:"|?*`+"`", r) || unicode.IsSpace(r) && r != ' ' || !unicode.IsPrint(r) && r != ' ':
			r = '_'
		}
		out = append(out, r)
	}
	if over := len(out) - maxFileName; over > 0 { // keep the end of the name, because the extension names the type
		keep := maxFileName / 2
		out = append(append(out[:keep:keep], '…'), out[keep+over+1:]...)
	}
	name := strings.TrimSpace(strings.TrimLeft(string(out), ". "))
	if name == "" || name == "_" || name == "/" {
		return fmt.Sprintf("file-%d%s", number, endings[kind])
	}
	return name
}
