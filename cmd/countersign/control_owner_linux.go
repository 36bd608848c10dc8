package main

import (
	"os"
	"syscall"
)

// owners returns the owner of the store's file: commands trust a bot that this user runs.
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
