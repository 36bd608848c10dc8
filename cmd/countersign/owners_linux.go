package main

import (
	"os"
	"syscall"
)

// owners are the users whom a file belongs to: its bot may be theirs.
func owners(path string) []int {
	info, err := os.Stat(path)
	if err != nil {
		return nil
	}
	stat, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return nil
	}
	return []int{int(stat.Uid)}
}
