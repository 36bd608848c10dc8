package main

import (
	"runtime"
	"runtime/debug"
	runtimemetrics "runtime/metrics"
	"time"
)

// The garbage collector runs when the live memory has grown by collectAt percent. The live memory is the live heap, the
// stacks and the global variables. When the bot handles many decisions, this setting saves about a fifth of the CPU
// time. The live memory is usually small, and the setting then costs little memory. The sum of the live memory and its
// garbage is limited to the larger of two values: mostMemory bytes, and the live memory plus leastGrowth percent.
const (
	collectAt   = 400
	mostMemory  = 64 << 20
	leastGrowth = 20

	releaseEvery = 5 * time.Second
	worthRelease = 32 << 20
)

// After each garbage collection, boundGarbage sets how much the heap may grow until the next one. When the bot
// allocates little, boundGarbage gives the memory of a burst back to the operating system.
func boundGarbage() {
	percent := collectAt
	debug.SetGCPercent(percent)
	live := metricsOf("/gc/heap/live:bytes", "/gc/scan/stack:bytes", "/gc/scan/globals:bytes")
	var collected func(struct{})
	next := func() { // runs after the next collection
		runtime.AddCleanup(&struct{ _ *byte }{}, collected, struct{}{})
	}
	collected = func(struct{}) {
		sum := uint64(0)
		for _, v := range live() {
			sum += v
		}
		if want := heapGrowth(sum); want < percent*9/10 || want > percent*11/10 { // setting the percentage stops the program for a moment
			percent = want
			debug.SetGCPercent(percent)
		}
		next()
	}
	next()
	go releaseMemory()
}

// From time to time, releaseMemory checks two conditions: at least worthRelease bytes are garbage or free, and the bot
// has allocated fewer than worthRelease bytes since the last check. If both hold, releaseMemory collects the garbage
// and returns free memory to the operating system. Without releaseMemory, the memory of a burst would stay resident
// until the next collection, or longer.
func releaseMemory() {
	read := metricsOf("/gc/heap/allocs:bytes", "/gc/heap/live:bytes", "/memory/classes/heap/objects:bytes", "/memory/classes/heap/free:bytes")
	before := uint64(0)
	for range time.Tick(releaseEvery) {
		now := read()
		allocated, live, objects, free := now[0], now[1], now[2], now[3]
		if objects-min(live, objects)+free >= worthRelease && allocated-before < worthRelease {
			debug.FreeOSMemory()
		}
		before = allocated
	}
}

// metricsOf returns a function that reads metrics of the Go runtime.
func metricsOf(names ...string) func() []uint64 {
	samples, values := make([]runtimemetrics.Sample, len(names)), make([]uint64, len(names))
	for i, name := range names {
		samples[i].Name = name
	}
	return func() []uint64 {
		runtimemetrics.Read(samples)
		for i, s := range samples {
			values[i] = s.Value.Uint64()
		}
		return values
	}
}

// heapGrowth returns by how many percent the live memory may grow before the garbage collector runs.
func heapGrowth(live uint64) int {
	return int(min(max((mostMemory-min(live, mostMemory))*100/max(live, 1), leastGrowth), collectAt))
}
