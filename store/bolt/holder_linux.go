package bolt

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

// holder names the process that holds the file's lock. If /proc does not show the process, holder explains how to find
// the process.
func holder(path string) string {
	unknown := fmt.Sprintf("a process that `fuser %s` shows", path)
	info, err := os.Stat(path)
	if err != nil {
		return unknown
	}
	stat, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return unknown
	}
	locks, err := os.ReadFile("/proc/locks")
	if err != nil {
		return unknown
	}
	file := fmt.Sprintf("%02x:%02x:%d", unix.Major(stat.Dev), unix.Minor(stat.Dev), stat.Ino)
	for line := range strings.Lines(string(locks)) { // example: "1: FLOCK ADVISORY WRITE 4711 fe:01:1234 0 EOF"
		f := strings.Fields(line)
		if len(f) < 6 || f[1] != "FLOCK" || f[5] != file {
			continue
		}
		if f[4] == strconv.Itoa(os.Getpid()) {
			return "this process itself"
		}
		name, err := os.ReadFile("/proc/" + f[4] + "/comm")
		if err != nil {
			return unknown // the process runs in another container
		}
		return fmt.Sprintf("process %s (%s)", f[4], strings.TrimSpace(string(name)))
	}
	return unknown
}
