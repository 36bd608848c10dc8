package main

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"strconv"
	"strings"
	"sync"
)

// crashes records the current work of the process in a file next to the store. After a crash, the next process reads
// from the file which work was in progress. The file is written without syncs. The operating system keeps unsynced data
// of a killed process. Unsynced data is lost only in a power failure, and the bot's work can't cause a power failure.
// The file contains no decisions. If the file is missing, all counts start at zero.
//
// Each line is an event. "+ KIND REF" means that work begins, and "- KIND REF" means that work ends. "! KIND REF N"
// means that N processes died during the work.
type crashes struct {
	path string
	log  *slog.Logger

	mu       sync.Mutex
	file     *os.File // nil: recording has stopped
	size     int
	underWay map[atWork]bool
	died     map[atWork]int
	order    []atWork // keys of died, oldest first
}

// atWork identifies a piece of work, such as a model step of a turn.
type atWork struct{ kind, ref string }

const (
	crashesRewritten = 256 << 10 // size in bytes at which the file is rewritten with only the relevant lines
	crashesKept      = 1000      // maximum number of entries in died
)

// openCrashes reads the work of the previous process and starts a new file. Errors don't prevent the start.
func openCrashes(path string, log *slog.Logger) *crashes {
	c := &crashes{path: path, log: log, underWay: map[atWork]bool{}, died: map[atWork]int{}}
	raw, err := os.ReadFile(path)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		log.Warn("the crash file can't be read; crashes of earlier processes are not counted", "file", path, "error", err)
	}
	c.read(raw)
	for w := range c.underWay {
		c.count(w, c.died[w]+1)
		log.Warn("the previous process died during this work", "kind", w.kind, "ref", w.ref, "times", c.died[w])
	}
	clear(c.underWay)
	if err := c.rewrite(); err != nil {
		c.complain(err)
	}
	return c
}

// read parses lines. read ignores an incomplete last line.
func (c *crashes) read(raw []byte) {
	raw = raw[:bytes.LastIndexByte(raw, '\n')+1]
	for s := bufio.NewScanner(bytes.NewReader(raw)); s.Scan(); {
		kind, rest, _ := strings.Cut(strings.TrimLeft(s.Text(), "+-! "), " ")
		quoted, err := strconv.QuotedPrefix(rest)
		if err != nil {
			continue
		}
		ref, _ := strconv.Unquote(quoted)
		w := atWork{kind, ref}
		switch s.Text()[0] {
		case '+':
			c.underWay[w] = true
		case '-':
			delete(c.underWay, w)
		case '!':
			if n, err := strconv.Atoi(strings.TrimSpace(rest[len(quoted):])); err == nil {
				c.count(w, n)
			}
		}
	}
}

func (c *crashes) count(w atWork, n int) {
	if _, known := c.died[w]; !known {
		c.order = append(c.order, w)
	}
	c.died[w] = n
	for len(c.order) > crashesKept {
		delete(c.died, c.order[0])
		c.order = c.order[1:]
	}
}

// Begin records that work begins.
func (c *crashes) Begin(kind, ref string) { c.note('+', atWork{kind, ref}) }

// End records that work has ended. The caller also calls End after failed work.
func (c *crashes) End(kind, ref string) { c.note('-', atWork{kind, ref}) }

// Count returns how many processes died during this work.
func (c *crashes) Count(kind, ref string) int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.died[atWork{kind, ref}]
}

// Forget sets the count of this work to zero.
func (c *crashes) Forget(kind, ref string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	w := atWork{kind, ref}
	if _, known := c.died[w]; !known {
		return
	}
	delete(c.died, w)
	for i := range c.order {
		if c.order[i] == w {
			c.order = append(c.order[:i], c.order[i+1:]...)
			break
		}
	}
	if c.file != nil {
		if err := c.rewrite(); err != nil {
			c.complain(err)
		}
	}
}

// stop records that the process ends in an orderly way, so that this end is not counted as a crash of the work in
// progress. After stop, no more work is recorded.
func (c *crashes) stop() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.file == nil {
		return
	}
	clear(c.underWay)
	err := c.rewrite()
	if c.file != nil {
		err = errors.Join(err, c.file.Close())
		c.file = nil
	}
	if len(c.died) == 0 {
		err = errors.Join(err, os.Remove(c.path))
	}
	if err != nil {
		c.complain(err)
	}
}

func (c *crashes) note(sign byte, w atWork) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.file == nil {
		return
	}
	if sign == '+' {
		c.underWay[w] = true
	} else {
		delete(c.underWay, w)
	}
	line := fmt.Sprintf("%c %s %q\n", sign, w.kind, w.ref)
	c.size += len(line)
	if c.size > crashesRewritten {
		if err := c.rewrite(); err != nil {
			c.complain(err)
		}
		return
	}
	if _, err := c.file.WriteString(line); err != nil {
		c.complain(err)
	}
}

func (c *crashes) rewrite() error {
	var b bytes.Buffer
	for _, w := range c.order {
		fmt.Fprintf(&b, "! %s %q %d\n", w.kind, w.ref, c.died[w])
	}
	for w := range c.underWay {
		fmt.Fprintf(&b, "+ %s %q\n", w.kind, w.ref)
	}
	f, err := os.OpenFile(c.path+".new", os.O_CREATE|os.O_WRONLY|os.O_TRUNC|os.O_APPEND, 0o600)
	if err != nil {
		return err
	}
	if _, err := f.Write(b.Bytes()); err != nil {
		return errors.Join(err, f.Close(), os.Remove(f.Name()))
	}
	if err := os.Rename(f.Name(), c.path); err != nil {
		return errors.Join(err, f.Close(), os.Remove(f.Name()))
	}
	if c.file != nil {
		err = c.file.Close()
	}
	c.file, c.size = f, b.Len()
	return err
}

// complain logs an error of the file, and closes the file. While no file is open, no work is recorded.
func (c *crashes) complain(err error) {
	c.log.Warn("the crash file can't be written; until the next start, a turn that crashes the process is not stopped automatically", "file", c.path, "error", err)
	if c.file != nil {
		_ = c.file.Close() // nothing more is written to the file
		c.file = nil
	}
}
