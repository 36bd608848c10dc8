package pins

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"github.com/go-json-experiment/json/jsontext"
)

// header is the first member of the file's JSON object. It explains the file to people.
const header = `pinned tool definitions, written by "countersign tools pin"; keep this file in version control, beside the policy`

// maxFile is the maximum size of the file, in bytes. For comparison, a thousand tools with long schemas take a few
// megabytes.
const maxFile = 64 << 20

// Beside returns the path of a policy file's lock file.
func Beside(policy string) string { return filepath.Join(filepath.Dir(policy), FileName) }

// Read reads a lock file. A missing file gives an empty Lock.
func Read(path string) (Lock, error) {
	data, err := Bytes(path)
	if err != nil || data == nil {
		return Lock{}, err
	}
	return Parse(path, data)
}

// Bytes returns the content of a lock file, or nil if there is none. Bytes opens only regular files, because reading
// any other file could block forever.
func Bytes(path string) ([]byte, error) {
	info, err := os.Stat(path) // follows links
	switch {
	case errors.Is(err, fs.ErrNotExist):
		if to, err := os.Readlink(path); err == nil {
			return nil, fmt.Errorf("%w: %s is a link to %s, which is not there; remove the link, or put the file where it leads", ErrLock, path, to)
		}
		return nil, nil
	case err != nil:
		return nil, fmt.Errorf("%w: %w", ErrLock, err)
	case !info.Mode().IsRegular():
		return nil, fmt.Errorf("%w: %s is not a regular file; move it away, and put the file from version control in its place, or pin the tools again with countersign tools pin", ErrLock, path)
	case info.Size() > maxFile:
		return nil, fmt.Errorf("%w: %s has %d bytes, more than %d", ErrLock, path, info.Size(), maxFile)
	}
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrLock, err)
	}
	return data, nil
}

// Format returns the lock in the format of its file. For the same pins, Format returns the same bytes.
func (l Lock) Format() []byte {
	out := []byte("{\n  \"countersign\": " + quoted(header) + ",\n  \"version\": " + strconv.Itoa(Version) + ",\n  \"tools\": [")
	for i, p := range l.Pins {
		if i > 0 {
			out = append(out, ',')
		}
		out = append(out, "\n    {"...)
		for _, f := range [][2]string{
			{"tool", p.Tool},
			{"source", p.Source},
			{"hash", p.Hash},
			{"first_seen", p.FirstSeen.UTC().Format(time.RFC3339)},
			{"pinned_at", p.PinnedAt.UTC().Format(time.RFC3339)},
			{"pinned_by", p.By},
		} {
			out = append(out, "\n      "+quoted(f[0])+": "+quoted(f[1])+","...)
		}
		out = append(out, "\n      \"definition\": "...)
		out = append(out, laidOut(p.Definition)...)
		out = append(out, "\n    }"...)
	}
	if len(l.Pins) > 0 {
		out = append(out, "\n  "...)
	}
	return append(out, "]\n}\n"...)
}

// laidOut formats a definition with a line of its own for each value.
func laidOut(definition []byte) []byte {
	out, err := jsontext.AppendFormat(nil, definition, jsontext.AllowDuplicateNames(true), jsontext.PreserveRawStrings(true),
		jsontext.Multiline(true), jsontext.WithIndentPrefix("      "), jsontext.WithIndent("  "))
	if err != nil {
		return definition // can't happen: Compact has checked the definition
	}
	return out
}

func quoted(s string) string {
	out, err := jsontext.AppendQuote(nil, s)
	if err != nil { // not valid UTF-8: the value is written as a quoted Go string
		out, _ = jsontext.AppendQuote(nil, strconv.QuoteToASCII(s))
	}
	return string(out)
}

// Write replaces a lock file atomically. After Write returns nil, the new file survives a power failure. An existing
// file keeps its permissions. A new file is readable by everybody, because it contains no secrets.
func (l Lock) Write(path string) (err error) {
	if _, err := Bytes(path); err != nil { // the path is a broken link, for example, or not a regular file
		return fmt.Errorf("the lock file can't be written, and is unchanged: %w", err)
	}
	mode := fs.FileMode(0o644)
	if info, err := os.Stat(path); err == nil {
		mode = info.Mode().Perm()
	}
	if at, err := filepath.EvalSymlinks(path); err == nil {
		path = at // write to the target of the link, so that the link stays
	}
	dir := filepath.Dir(path)
	f, err := os.CreateTemp(dir, FileName+".*")
	if err != nil {
		return fmt.Errorf("the lock file can't be written: %w", err)
	}
	replaced := false
	defer func() {
		if err != nil && !replaced {
			err = fmt.Errorf("the lock file can't be written, and is unchanged: %w", errors.Join(err, f.Close(), os.Remove(f.Name())))
		}
	}()
	if _, err = f.Write(l.Format()); err != nil {
		return err
	}
	if err = f.Chmod(mode); err != nil {
		return err
	}
	if err = f.Sync(); err != nil {
		return err
	}
	if err = os.Rename(f.Name(), path); err != nil {
		return err
	}
	replaced = true
	if err := errors.Join(f.Close(), syncDir(dir)); err != nil {
		return fmt.Errorf("the lock file is written, but a power cut may undo that: %w", err)
	}
	return nil
}

// syncDir syncs a directory, so that a rename in the directory survives a power failure.
func syncDir(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}
