package workflow

import (
	"slices"
	"strings"
	"testing"
	"time"
)

func TestIDs(t *testing.T) {
	now := time.Date(2026, 3, 2, 9, 0, 0, 0, time.UTC)
	var m idMaker
	var ids []string
	for i := range 1000 {
		ids = append(ids, m.newID("req", now.Add(time.Duration(i)*time.Millisecond)))
	}
	if !slices.IsSorted(ids) {
		t.Error("later ids do not sort after earlier ones")
	}
	seen := map[string]bool{}
	last := ""
	for range 1000 {
		id := m.newID("req", now)
		if random, ok := strings.CutPrefix(id, ids[0][:len("req_")+9]); !ok || len(random) < 17 {
			t.Errorf("%s does not begin like %s, which has the same time, or its random part is too short", id, ids[0])
		}
		if id < last {
			t.Errorf("%s, made after %s, sorts before it", id, last)
		}
		last = id
		seen[id] = true
	}
	var even []string
	for i := range 1000 {
		if id := m.newID("req", now.Add(time.Duration(i%2)*time.Millisecond)); i%2 == 0 {
			even = append(even, id)
		}
	}
	if !slices.IsSorted(even) {
		t.Error("ids of one moment are not in order if ids of another moment were made between them")
	}
	if len(seen) != 1000 {
		t.Errorf("%d of 1000 ids of one moment differ", len(seen))
	}
}
