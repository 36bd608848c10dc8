package task

import (
	"os"
	"syscall"
)

// owners returns the user id of the owner of the store's file. Commands trust a bot that runs as this user.
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
