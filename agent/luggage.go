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

	"countersign/approvers/desk"
)

// What a run may bring back beside its text.
const (
	MaxFile      = 5 << 20 // bytes of one file
	MaxFiles     = 10
	MaxFilesSize = 10 << 20 // bytes of all of a run's files
)

// ErrFile says that a file can't be attached to a result. The wrapping error says why, in words for the model.
var ErrFile = errors.New("the file was not attached")

// luggage is what a run brings back beside its text. It is safe for use by many goroutines.
type luggage struct {
	mu    sync.Mutex
	files []desk.File
	size  int
	over  bool
}

// attach adds a file, under a name that people can read and of the type that its bytes have.
func (l *luggage) attach(f File) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case l.over:
		return fmt.Errorf("%w: the run is over", ErrFile)
	case len(f.Data) == 0:
		return fmt.Errorf("%w: it is empty", ErrFile)
	case len(f.Data) > MaxFile:
		return fmt.Errorf("%w: it has %d bytes, and one may have %d; make it smaller, or return an address where people find it", ErrFile, len(f.Data), MaxFile)
	case len(l.files) == MaxFiles:
		return fmt.Errorf("%w: a run may attach %d; put them together into one", ErrFile, MaxFiles)
	case l.size+len(f.Data) > MaxFilesSize:
		return fmt.Errorf("%w: with it they would have %d bytes, and all of a run may have %d", ErrFile, l.size+len(f.Data), MaxFilesSize)
	}
	l.size += len(f.Data)
	kind := kindOf(f)
	l.files = append(l.files, desk.File{Name: fileName(f.Name, kind, len(l.files)+1), Type: kind, Data: append([]byte(nil), f.Data...)})
	return nil
}

// take ends the run's part in it, and hands over what there is.
func (l *luggage) take() []desk.File {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.over = true
	return l.files
}

// kindOf is a file's media type: what its tool says, unless its bytes are clearly something else.
func kindOf(f File) string {
	said, _, err := mime.ParseMediaType(f.Type)
	is, _, _ := mime.ParseMediaType(http.DetectContentType(f.Data))
	if is == "text/plain" && !utf8.Valid(f.Data) {
		is = "application/octet-stream"
	}
	if err != nil || len(f.Type) > 100 {
		return is
	}
	written := strings.HasSuffix(said, "+xml") // a picture in words
	if of := family(said); of != "" && of != family(is) && !written && is != "application/octet-stream" && !isSound(said, is) {
		return is
	}
	return said
}

// family is what a file is that people look at or listen to; empty: it is none.
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

// isSound reports whether two types are names of one kind of recording: containers are found as one and said to be the other.
func isSound(said, is string) bool {
	return (strings.HasPrefix(said, "audio/") || strings.HasPrefix(said, "video/")) && (strings.HasPrefix(is, "audio/") || strings.HasPrefix(is, "video/") || is == "application/ogg")
}

// maxFileName is how many characters of a file's name are kept.
const maxFileName = 100

// endings are the usual ends of names, for files that come without one.
var endings = map[string]string{
	"image/png": ".png", "image/jpeg": ".jpg", "image/gif": ".gif", "image/webp": ".webp", "audio/wave": ".wav", "audio/wav": ".wav", "audio/mpeg": ".mp3",
	"application/pdf": ".pdf", "application/json": ".json", "text/plain": ".txt", "text/csv": ".csv", "text/html": ".html", "application/zip": ".zip",
}

// fileName is a file's name as people read it: no folders, nothing that can't be seen, and all of its endings, so that none is hidden.
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
	if over := len(out) - maxFileName; over > 0 { // the end says what it is
		keep := maxFileName / 2
		out = append(append(out[:keep:keep], '…'), out[keep+over+1:]...)
	}
	name := strings.TrimSpace(strings.TrimLeft(string(out), ". "))
	if name == "" || name == "_" || name == "/" {
		return fmt.Sprintf("file-%d%s", number, endings[kind])
	}
	return name
}
