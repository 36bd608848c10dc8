package config

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io"
	"io/fs"
	"os"

	"countersign/approvers"
	"countersign/config/condition"
	"countersign/config/yamldoc"
)

// File is a parsed policy file. File has the values, and their positions in the file.
type File struct {
	Name   string
	Policy *approvers.Policy
	// Servers lists the MCP servers, in the order of the file.
	Servers []Server
	// HTTP lists the tools that make one HTTP request. OpenAPI lists the files whose operations become tools. Both
	// lists are in the order of the file.
	HTTP    []Endpoint
	OpenAPI []OpenAPI

	// Document has the position of each value.
	Document *yamldoc.Document
	// Conditions has the conditions of rules. The keys are the paths of the conditions, such as
	// tools.issue_refund.rules[0].when.
	Conditions map[string]*condition.Compiled
}

// ReadPolicy reads a policy file. The error is [yamldoc.Problems] if the file is invalid or can't be read. A valid
// file may contain a policy that can't work: see package check.
func ReadPolicy(path string) (*File, error) {
	data, err := ReadFile(path)
	if err != nil {
		return nil, err
	}
	file, err := ParsePolicy(path, data)
	if err != nil {
		return nil, err
	}
	return file, nil
}

// ReadFile reads a policy file's content for [ParsePolicy]. The error is [yamldoc.Problems].
func ReadFile(path string) ([]byte, error) {
	data, err := readFile(path)
	if err == nil {
		return data, nil
	}
	p := yamldoc.Problem{File: path, Message: "can't be read: " + plainCause(err)}
	if errors.Is(err, fs.ErrNotExist) {
		p.Message, p.Hint = "there is no such file", "write one (docs/policy.md has an example), or set COUNTERSIGN_POLICY to where it is"
	}
	return nil, yamldoc.Problems{p}
}

// Hash returns the hex SHA-256 of a policy file's content.
func Hash(data []byte) string {
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:])
}

var errNotRegular = errors.New("it is not a regular file")

// readFile reads at most one byte more than the limit. So ParsePolicy can detect a file that is too large.
func readFile(path string) ([]byte, error) {
	if info, err := os.Stat(path); err == nil && !info.Mode().IsRegular() && !info.IsDir() {
		return nil, errNotRegular // reading it could block forever
	}
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return io.ReadAll(io.LimitReader(f, yamldoc.MaxFile+1))
}

// plainCause removes the path from an error, because the problem already names the path.
func plainCause(err error) string {
	var at *fs.PathError
	if errors.As(err, &at) {
		return at.Err.Error()
	}
	return err.Error()
}

// ParsePolicy parses a policy file's content. name is the file's name in problems. If values have errors, ParsePolicy
// also returns a File with the readable values. This File is only for looking up names of tools, approvers and agents,
// because other values may be wrong.
func ParsePolicy(name string, data []byte) (*File, error) {
	doc, root, ok := yamldoc.Parse(name, "docs/policy.md", data)
	file := &File{Name: name, Document: doc, Conditions: map[string]*condition.Compiled{}}
	if ok {
		r := reader{file: file}
		policy := r.policy(root)
		policy.Hash = Hash(data)
		file.Policy = policy.Indexed()
	}
	err := doc.Problems().Err()
	if file.Policy == nil {
		return nil, err
	}
	return file, err
}

// Finding returns a problem with the value at a path such as http.weather. The packages that read the files named in
// the policy report their findings in this way.
func (f *File) Finding(s yamldoc.Severity, path, message, hint string) yamldoc.Problem {
	return f.Document.Problem(s, path, message, hint)
}
