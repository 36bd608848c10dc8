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

// Operator returns the person id of the user who runs the command. uid is this user's id on the machine.
func Operator(uid int) approvers.PersonID {
	id := strconv.Itoa(uid)
	if u, err := user.LookupId(id); err == nil {
		return approvers.Operator(u.Username)
	}
	return approvers.Operator(id)
}

// IsTerminal reports whether a stream is a character device, such as a terminal.
func IsTerminal(stream any) bool {
	f, ok := stream.(*os.File)
	if !ok {
		return false
	}
	info, err := f.Stat()
	return err == nil && info.Mode()&os.ModeCharDevice != 0
}
