package main

import (
	"runtime"
	"runtime/debug"
	runtimemetrics "runtime/metrics"
)

// Garbage is collected when the heap has grown by collectAt percent, which saves about a fifth of the CPU time with many
// decisions. As long as the live heap is small, as it usually is, this costs little memory. If the heap is larger, its
// garbage is limited to mostGarbage or to the size of the live heap, whichever is larger.
const (
	collectAt   = 400
	mostGarbage = 64 << 20
)

// boundGarbage sets the growth of the heap after each garbage collection.
func boundGarbage() {
	percent := collectAt
	debug.SetGCPercent(percent)
	live := []runtimemetrics.Sample{{Name: "/gc/heap/live:bytes"}}
	var collected func(struct{})
	next := func() { // runs after the next collection
		runtime.AddCleanup(&struct{ _ *byte }{}, collected, struct{}{})
	}
	collected = func(struct{}) {
		runtimemetrics.Read(live)
		if want := heapGrowth(live[0].Value.Uint64()); want < percent*9/10 || want > percent*11/10 { // setting it stops the program for a moment
			percent = want
			debug.SetGCPercent(percent)
		}
		next()
	}
	next()
}

// heapGrowth returns by how many percent a heap may grow.
func heapGrowth(live uint64) int {
	return int(min(max(mostGarbage*100/max(live, 1), 100), collectAt))
}
