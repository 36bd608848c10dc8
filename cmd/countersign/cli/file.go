package cli

import (
	"errors"
	"io"
	"os"
	"path/filepath"

	"countersign/internal/owner"
)

// WholeFile writes a file. The file appears under its name only when it is complete and synced. Only the owner can read
// the file. A file that replaces another user's file belongs to this process's user, so the other user can't read it.
func WholeFile(path string, write func(*os.File) error) error {
	return wholeFile(path, nil, write)
}

// BotsFile is WholeFile for a file that the bot reads. If root replaces a file, the file keeps its owner. A new file that
// root makes belongs to the owner of the file like. If like is empty, or there is no such file, the new file belongs to
// the owner of its directory.
func BotsFile(path, like string, write func(*os.File) error) error {
	return wholeFile(path, []string{path, like, filepath.Dir(path)}, write)
}

// wholeFile gives the file the owner of the first existing path in owners.
func wholeFile(path string, owners []string, write func(*os.File) error) error {
	if info, err := os.Stat(path); err == nil && info.IsDir() {
		return Misused("%s is a directory; name a file", path)
	}
	dir := filepath.Dir(path)
	f, err := os.CreateTemp(dir, "."+filepath.Base(path)+".*") // mode 0600
	if err != nil {
		return CouldNot("%s can't be written; choose another place: %w", path, err)
	}
	err = owner.Inherit(f, owners...)
	if err == nil {
		err = write(f)
	}
	if err != nil {
		return errors.Join(err, f.Close(), os.Remove(f.Name()))
	}
	if err := errors.Join(f.Sync(), f.Close(), os.Rename(f.Name(), path)); err != nil {
		return errors.Join(CouldNot("%s can't be written: %w", path, err), os.Remove(f.Name()))
	}
	d, err := os.Open(dir)
	if err != nil {
		return CouldNot("%s is written, but may be lost in a power failure: %w", path, err)
	}
	defer d.Close()
	if err := d.Sync(); err != nil {
		return CouldNot("%s is written, but may be lost in a power failure: %w", path, err)
	}
	return nil
}

// Output counts the bytes that a command prints, and keeps the first write error.
type Output struct {
	W       io.Writer
	Written int
	Err     error
}

func (s *Output) Write(p []byte) (int, error) {
	n, err := s.W.Write(p)
	if s.Written += n; err != nil && s.Err == nil {
		s.Err = err
	}
	return n, err
}

// SameFile reports whether two paths name the same existing file.
func SameFile(a, b string) bool {
	ai, err := os.Stat(a)
	if err != nil {
		return false
	}
	bi, err := os.Stat(b)
	return err == nil && os.SameFile(ai, bi)
}

// Stderr is the destination of the log. Only tests set Stderr.
var Stderr io.Writer = os.Stderr
