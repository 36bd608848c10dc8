package main

import (
	"errors"
	"io"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"
)

func fileFlag(cmd *cobra.Command, file *string) {
	cmd.Flags().StringVarP(file, "out", "o", "-", "the file to write; - prints it")
}

// toFile has write write into a file, which is whole or not there: it appears when everything was written. "-" is the terminal.
func toFile(cmd *cobra.Command, path string, write func(io.Writer) error) error {
	if path == "-" {
		return write(cmd.OutOrStdout())
	}
	return wholeFile(path, func(f *os.File) error { return write(f) })
}

// wholeFile writes a file that is there, and durable, when everything was written, and not before. It is for its owner only.
func wholeFile(path string, write func(*os.File) error) error {
	dir := filepath.Dir(path)
	f, err := os.CreateTemp(dir, "."+filepath.Base(path)+".*") // mode 0600
	if err != nil {
		return couldNot("%s can't be written; choose another place: %w", path, err)
	}
	if err := write(f); err != nil {
		return errors.Join(err, f.Close(), os.Remove(f.Name()))
	}
	if err := errors.Join(f.Sync(), f.Close(), os.Rename(f.Name(), path)); err != nil {
		return errors.Join(couldNot("%s can't be written: %w", path, err), os.Remove(f.Name()))
	}
	d, err := os.Open(dir)
	if err != nil {
		return couldNot("%s is written, and may be lost in a power failure: %w", path, err)
	}
	defer d.Close()
	if err := d.Sync(); err != nil {
		return couldNot("%s is written, and may be lost in a power failure: %w", path, err)
	}
	return nil
}

// spoken is what a command says. It remembers how much that was, and that something of it could not be written.
type spoken struct {
	w   io.Writer
	n   int
	err error
}

func (s *spoken) Write(p []byte) (int, error) {
	n, err := s.w.Write(p)
	if s.n += n; err != nil && s.err == nil {
		s.err = err
	}
	return n, err
}
