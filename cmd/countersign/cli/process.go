package cli

import (
	"fmt"
	"os"
)

// ProcessName returns a readable name of this process: the machine's name and the process id.
func ProcessName() string {
	host, err := os.Hostname()
	if err != nil {
		host = "unknown"
	}
	return fmt.Sprintf("%s:%d", host, os.Getpid())
}
