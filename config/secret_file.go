package config

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"runtime"
	"strings"

	"countersign/config/yamldoc"
)

// fileSuffix is the suffix of a variable that names a file with a secret. Docker's official images use the same suffix.
const fileSuffix = "_FILE"

// maxSecretFile is the maximum size in bytes of a file with a secret.
const maxSecretFile = 64 << 10

// secretFiles reads the files that contain secrets.
type secretFiles struct {
	paths    map[string]string // by the secret's variable
	problems yamldoc.Problems  // with warnings
}

// read returns the value of a secret. The value comes from the secret's variable, or from a file. The variable with
// the suffix _FILE names this file.
func (f *secretFiles) read(name, value string) string {
	companion := name + fileSuffix
	path := os.Getenv(companion)
	switch {
	case path == "":
		return value
	case value != "":
		f.say(yamldoc.Error, companion, "is set, and "+name+" is set, too", "unset one of them")
		return ""
	}
	if f.paths == nil {
		f.paths = map[string]string{}
	}
	f.paths[name] = path
	text, mode, err := ReadSecretFile(path)
	if err != nil {
		f.say(yamldoc.Error, companion, err.Error(), "write the path of a file that contains only the secret")
		return ""
	}
	if mode&0o004 != 0 && runtime.GOOS != "windows" {
		f.say(yamldoc.Warning, companion, path+" can be read by every user of this machine", "chmod 400 "+path)
	}
	return text
}

func (f *secretFiles) say(s yamldoc.Severity, variable, message, hint string) {
	f.problems = append(f.problems, yamldoc.Problem{Variable: variable, Message: message, Hint: hint, Severity: s})
}

// ReadSecretFile reads a file that contains one secret. ReadSecretFile removes one line break from the end of the
// content. The error never contains the content.
func ReadSecretFile(path string) (secret string, mode fs.FileMode, err error) {
	info, err := os.Stat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return "", 0, fmt.Errorf("names %s, which does not exist", path)
	case err != nil:
		return "", 0, unreadable(path, err)
	case !info.Mode().IsRegular(): // reading from a pipe could wait forever
		return "", 0, fmt.Errorf("names %s, which is not a file", path)
	}
	file, err := os.Open(path)
	if err != nil {
		return "", 0, unreadable(path, err)
	}
	defer file.Close()
	content, err := io.ReadAll(io.LimitReader(file, maxSecretFile+1))
	if err != nil {
		return "", 0, unreadable(path, err)
	}
	text := strings.TrimSuffix(strings.TrimSuffix(string(content), "\n"), "\r")
	switch {
	case len(content) > maxSecretFile:
		return "", 0, fmt.Errorf("names %s, which has more than %d bytes, so it is not a secret", path, maxSecretFile)
	case strings.TrimSpace(text) == "":
		return "", 0, fmt.Errorf("names %s, which is empty", path)
	}
	return text, info.Mode(), nil
}

// unreadable returns the error for a file that can't be read. The path is not followed by a colon, because logs remove
// the word after "token:", which could be a secret.
func unreadable(path string, err error) error {
	var failed *fs.PathError
	if errors.As(err, &failed) {
		err = failed.Err
	}
	return fmt.Errorf("names %s, which can't be read: %w", path, err)
}

// Lookup finds the environment variable for ${NAME} in a policy. If NAME is not set or is empty, and NAME_FILE is set,
// Lookup returns the secret in the file that NAME_FILE names. If that file can't be read, Lookup ignores NAME_FILE.
func Lookup(name string) (value string, found bool) {
	if value, found = os.LookupEnv(name); found && value != "" {
		return value, true
	}
	if path := os.Getenv(name + fileSuffix); path != "" {
		if text, _, err := ReadSecretFile(path); err == nil {
			return text, true
		}
	}
	return value, found
}
