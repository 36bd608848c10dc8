//go:build linux

package workflow_test

import (
	"math/rand/v2"
	"slices"
)

// disk is the content of a disk at one moment of a recorded process. The field synced is the content at the last sync.
// The writes after the last sync may have reached the disk in any order, or not at all.
type disk struct {
	synced []byte
	since  []traced
}

// d.do applies one event to the disk.
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

// e.on applies a write or a truncation to a file.
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

// sectors are the sizes of the units in which a disk keeps or loses writes. The units are the smallest sector, a page,
// and a whole write.
var sectors = []int64{512, 4096, 1 << 40}

// image returns a possible content of the disk after a power failure at this moment. The content has everything that
// was synced, and a random part of the later writes in random order. image also returns how many sectors of the later
// writes the content has, and how many sectors it lacks.
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

// parts splits a write at the borders of the sectors.
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
