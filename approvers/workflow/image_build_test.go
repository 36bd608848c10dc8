//go:build linux

package workflow_test

import (
	"math/rand/v2"
	"slices"
)

// disk is what is on the disk at a moment of a recorded run: what was synced, and what was written since, of which
// nobody knows how much arrived, nor in which order.
type disk struct {
	synced []byte
	since  []traced
}

// do brings the disk to the moment after one more event.
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

// on is a file after a write or a truncation.
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

// sectors are the units in which a disk keeps or loses what was written: the smallest, a page, and whole writes.
var sectors = []int64{512, 4096, 1 << 40}

// image is what a machine that lost its power at this moment could find: everything that was synced, and of the rest
// whatever chance kept, in any order. It also says how many sectors were kept, and how many were lost.
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

// parts cuts a write where sectors begin.
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
