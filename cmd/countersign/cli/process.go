package cli

import (
	"fmt"
	"os"
	"os/user"
	"strconv"

	"countersign/approvers"
)

// ProcessName returns a readable name of this process: the machine's name and the process id.
func ProcessName() string {
	host, err := os.Hostname()
	if err != nil {
		host = "unknown"
	}
	return fmt.Sprintf("%s:%d", host, os.Getpid())
}

// Operator returns the id of the machine's user at the command line.
func Operator(uid int) approvers.PersonID {
	id := strconv.Itoa(uid)
	if u, err := user.LookupId(id); err == nil {
		return approvers.Operator(u.Username)
	}
	return approvers.Operator(id)
}

// IsTerminal reports whether a stream is a terminal, or another device that shows characters to people.
func IsTerminal(stream any) bool {
	f, ok := stream.(*os.File)
	if !ok {
		return false
	}
	info, err := f.Stat()
	return err == nil && info.Mode()&os.ModeCharDevice != 0
}
