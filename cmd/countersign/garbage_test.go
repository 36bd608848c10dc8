package main

import "testing"

func TestHeapGrowth(t *testing.T) {
	for live, want := range map[uint64]int{0: 400, 1 << 20: 400, 12 << 20: 400, 16 << 20: 300, 32 << 20: 100, 40 << 20: 60, 64 << 20: 20, 80 << 20: 20, 1 << 30: 20} {
		if got := heapGrowth(live); got != want {
			t.Errorf("%d MiB of live memory grow by %d %%, want %d", live>>20, got, want)
		}
	}
}
