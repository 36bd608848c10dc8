package config

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strings"

	"countersign/approvers"
)

// MaxFile is the largest policy file that is read, in bytes.
const MaxFile = 1 << 20

// File is a policy file that could be read: its values, and where each was written.
type File struct {
	Name   string
	Policy *approvers.Policy
	// Servers are the MCP servers whose tools are offered, in the order of the file.
	Servers []Server
	// HTTP are the tools that are one HTTP request, OpenAPI the files whose operations are tools, both in the order of the file.
	HTTP    []Endpoint
	OpenAPI []OpenAPI

	lines []string
	marks map[string]mark // by path, such as tools.issue_refund.rules[0]

	conditions map[string]condition // by path, such as tools.issue_refund.rules[0].when
}

// mark is a place in the file, from 1.
type mark struct{ line, column int }

// ReadPolicy reads a policy file. The error is [Problems] where the file's content is wrong or the file can't be read.
// A nil error does not mean that the policy makes sense: see [File.Check].
func ReadPolicy(path string) (*File, error) {
	data, err := ReadFile(path)
	if err != nil {
		return nil, err
	}
	return ParsePolicy(path, data)
}

// ReadFile reads a policy file's content for [ParsePolicy]. The error is [Problems].
func ReadFile(path string) ([]byte, error) {
	data, err := readFile(path)
	if err == nil {
		return data, nil
	}
	p := Problem{File: path, Message: "can't be read: " + plainCause(err)}
	if errors.Is(err, fs.ErrNotExist) {
		p.Message, p.Hint = "there is no such file", "write one (docs/policy.md has an example), or set COUNTERSIGN_POLICY to where it is"
	}
	return nil, Problems{p}
}

// Hash names a policy file's content: the hex SHA-256 of its bytes.
func Hash(data []byte) string {
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:])
}

var errNotRegular = errors.New("it is no regular file")

// readFile reads a little more than the limit, so that ParsePolicy sees when a file is too large.
func readFile(path string) ([]byte, error) {
	if info, err := os.Stat(path); err == nil && !info.Mode().IsRegular() && !info.IsDir() {
		return nil, errNotRegular // reading it might never end
	}
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return io.ReadAll(io.LimitReader(f, MaxFile+1))
}

// plainCause is an error without the path, which the problem names already.
func plainCause(err error) string {
	var at *fs.PathError
	if errors.As(err, &at) {
		return at.Err.Error()
	}
	return err.Error()
}

// ParsePolicy reads a policy from a file's content. name is what problems call it.
func ParsePolicy(name string, data []byte) (*File, error) {
	file := &File{Name: name, marks: map[string]mark{}, conditions: map[string]condition{}}
	r := &reader{file: file}
	root, ok := r.parse(data)
	if ok {
		policy := r.policy(root)
		policy.Hash = Hash(data)
		file.Policy = policy.Indexed()
	}
	if err := r.problems.inOrder().err(); err != nil {
		return nil, err
	}
	return file, nil
}

// at finds where something was written. Where that place has no mark of its own, what holds it has one.
func (f *File) at(path string) mark {
	for path != "" {
		if m, ok := f.marks[path]; ok {
			return m
		}
		path = path[:max(strings.LastIndexAny(path, ".["), 0)]
	}
	return mark{1, 1}
}

// Finding is a problem with what the file names at a path, such as http.weather: for whoever reads that.
func (f *File) Finding(s Severity, path, message, hint string) Problem {
	return f.problem(s, path, message, hint)
}

// problem is a finding at a path.
func (f *File) problem(s Severity, path, message, hint string) Problem {
	return f.problemAt(f.at(path), s, orFile(path)+": "+message, hint)
}

func (f *File) problemAt(m mark, s Severity, message, hint string) Problem {
	p := Problem{File: f.Name, Line: m.line, Column: m.column, Severity: s, Message: message, Hint: hint}
	if m.line >= 1 && m.line <= len(f.lines) {
		p.Source = f.lines[m.line-1]
	}
	return p
}

func fileTooLarge() (message, hint string) {
	return fmt.Sprintf("is larger than %d KiB", MaxFile>>10), "a policy is a few pages of text: is this the right file?"
}
