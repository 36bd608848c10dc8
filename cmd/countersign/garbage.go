package main

import (
	"runtime"
	"runtime/debug"
	runtimemetrics "runtime/metrics"
)

// The garbage collector runs when the heap has grown by collectAt percent. When the bot handles many decisions, this
// setting saves about a fifth of the CPU time. The live heap is usually small, and the setting then costs little
// memory. If the live heap is large, its garbage is limited. The limit is mostGarbage, in bytes, or the size of the
// live heap, whichever is larger.
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
		if want := heapGrowth(live[0].Value.Uint64()); want < percent*9/10 || want > percent*11/10 { // setting the percentage stops the program for a moment
			percent = want
			debug.SetGCPercent(percent)
		}
		next()
	}
	next()
}

// heapGrowth returns by how many percent a heap may grow before the garbage collector runs.
func heapGrowth(live uint64) int {
	return int(min(max(mostGarbage*100/max(live, 1), 100), collectAt))
}
