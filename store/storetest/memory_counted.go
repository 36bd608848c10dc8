package storetest

import (
	"cmp"
	"maps"
	"slices"
	"time"

	"countersign/approvers"
	"countersign/store"
)

func (m *memory) CounterSum(key string, after time.Time) (int, error) {
	sum := 0
	for t, n := range m.counters {
		if t.key == key && t.at.After(after) {
			sum += n
		}
	}
	return sum, nil
}

func (m *memory) AddCounter(t store.Counter) error {
	m.counters[counterKey{t.Key, t.At, t.ID}] = t.N
	return nil
}

func (m *memory) PruneCounters(before time.Time, limit int) (int, error) {
	old := slices.SortedFunc(maps.Keys(m.counters), func(a, b counterKey) int {
		return cmp.Or(a.at.Compare(b.at), cmp.Compare(a.key, b.key), cmp.Compare(a.id, b.id))
	})
	old = slices.DeleteFunc(old, func(t counterKey) bool { return !t.at.Before(before) })
	old = old[:min(len(old), max(limit, 0))]
	for _, t := range old {
		delete(m.counters, t)
	}
	return len(old), nil
}

func (m *memory) Grant(id string) (approvers.Grant, error) { return find(m.grants, id) }

func (m *memory) OpenGrants(tool string) ([]approvers.Grant, error) {
	var out []approvers.Grant
	for _, id := range m.granted {
		if g := m.grants[id]; g.State.Open() && (tool == "" || g.Tool == tool) {
			out = append(out, g)
		}
	}
	return out, nil
}

func (m *memory) ClosedGrants(after string, limit int) ([]approvers.Grant, error) {
	return sorted(m.grants, func(g approvers.Grant) bool { return !g.State.Open() && g.ID > after },
		func(a, b approvers.Grant) int { return cmp.Compare(a.ID, b.ID) }, limit), nil
}

func (m *memory) EraseGrant(id string) error {
	delete(m.grants, id)
	m.granted = slices.DeleteFunc(m.granted, func(g string) bool { return g == id })
	return nil
}

func (m *memory) PutGrant(g approvers.Grant) error {
	created := g.Version == 0
	err := guard(m.grants, g.ID, &g.Version, func(g approvers.Grant) uint64 { return g.Version })
	if err != nil {
		return err
	}
	if created {
		m.granted = append(m.granted, g.ID)
	}
	m.grants[g.ID] = g
	return nil
}

func (m *memory) Absence(who approvers.PersonID) (approvers.Absence, error) {
	return find(m.absences, string(who))
}

func (m *memory) Absences() ([]approvers.Absence, error) {
	return sorted(m.absences, func(approvers.Absence) bool { return true },
		func(a, b approvers.Absence) int { return cmp.Compare(a.Who, b.Who) }, noLimit), nil
}

func (m *memory) PutAbsence(a approvers.Absence) error {
	err := guard(m.absences, string(a.Who), &a.Version, func(a approvers.Absence) uint64 { return a.Version })
	if err == nil {
		m.absences[string(a.Who)] = a
	}
	return err
}

func (m *memory) EraseAbsence(who approvers.PersonID) error {
	delete(m.absences, string(who))
	return nil
}
