package main

import "testing"

func TestHeapGrowth(t *testing.T) {
	for live, want := range map[uint64]int{0: 400, 1 << 20: 400, 16 << 20: 400, 32 << 20: 200, 64 << 20: 100, 128 << 20: 50, 1 << 30: 50} {
		if got := heapGrowth(live); got != want {
			t.Errorf("%d MiB of live memory grow by %d %%, want %d", live>>20, got, want)
		}
	}
}
