//go:build linux

package workflow_test

import (
	"math/rand/v2"
	"slices"
)

// disk is the content of the disk at one moment of a recorded run: the synced content, and the writes after the last
// sync. Nobody knows which of these writes reached the disk, and in which order.
type disk struct {
	synced []byte
	since  []traced
}

// do advances the disk by one event.
func (d *disk) do(e traced) {
	switch e.kind {
	case wrote, truncated:
		d.since = append(d.since, e)
	case synced:
		for _, w := range d.since {
			d.synced = w.on(d.synced)
		}
		d.since = nil
	}
}

// on applies a write or a truncation to a file.
func (e traced) on(file []byte) []byte {
	end := e.off
	if e.kind == wrote {
		end += int64(len(e.data))
	}
	if end > int64(len(file)) {
		file = append(file, make([]byte, end-int64(len(file)))...)
	}
	if e.kind == truncated {
		return file[:end]
	}
	copy(file[e.off:], e.data)
	return file
}

// sectors are the units in which a disk keeps or loses writes: the smallest sector, a page, and whole writes.
var sectors = []int64{512, 4096, 1 << 40}

// image is a possible content of the disk after a power failure at this moment. It has everything that was synced, and
// a random part of the later writes, in any order. image also returns how many sectors were kept and how many were
// lost.
func (d *disk) image(random *rand.Rand) (file []byte, kept, lost int) {
	sector := sectors[random.IntN(len(sectors))]
	chance := []float64{0, 0.5, 1, random.Float64()}[random.IntN(4)]
	file = slices.Clone(d.synced)
	for _, i := range random.Perm(len(d.since)) {
		for _, part := range d.since[i].parts(sector) {
			if random.Float64() >= chance {
				lost++
				continue
			}
			file = part.on(file)
			kept++
		}
	}
	return file, kept, lost
}

// parts splits a write at the sectors' borders.
func (e traced) parts(sector int64) (parts []traced) {
	if e.kind != wrote {
		return []traced{e}
	}
	off, end := e.off, e.off+int64(len(e.data))
	for off < end {
		next := min(end, off+sector-off%sector)
		parts = append(parts, traced{kind: wrote, off: off, data: e.data[off-e.off : next-e.off]})
		off = next
	}
	return parts
}
