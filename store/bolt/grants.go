package bolt

import (
	"errors"

	"countersign/approvers"
	"countersign/store"
)

var grantTable = &table[approvers.Grant]{
	in: grants, name: "grant",
	id:      func(g *approvers.Grant) (string, *uint64) { return g.ID, &g.Version },
	indexes: []bucket{grantOpen},
	closed:  func(g *approvers.Grant) bool { return !g.State.Open() },
	index: func(g *approvers.Grant, birth uint64) []row {
		if !g.State.Open() {
			return nil
		}
		rows := []row{{grantOpen, number(text(nil, ""), birth)}} // the row for listing the grants of all tools
		if g.Tool != "" {
			rows = append(rows, row{grantOpen, number(text(nil, g.Tool), birth)})
		}
		return rows
	},
}

var absenceTable = &table[approvers.Absence]{
	in: absences, name: "absence",
	id: func(a *approvers.Absence) (string, *uint64) { return string(a.Who), &a.Version },
}

func (t reader) Grant(id string) (approvers.Grant, error) { return grantTable.read(t.rows, id) }

func (t reader) OpenGrants(tool string) ([]approvers.Grant, error) {
	return grantTable.readable(t.rows, t.rows.sound(grantOpen, text(nil, tool), nil), noLimit)
}

func (t reader) ClosedGrants(after string, limit int) ([]approvers.Grant, error) {
	var out []approvers.Grant
	for id := range t.rows.sound(grants, nil, append([]byte(after), 0)) {
		if len(out) >= limit {
			break
		}
		g, err := t.Grant(string(id))
		switch {
		case err != nil && !errors.Is(err, store.ErrDamaged):
			return nil, err
		case err == nil && !g.State.Open():
			out = append(out, g)
		}
	}
	return out, nil
}

func (t *tx) PutGrant(g approvers.Grant) error { return grantTable.write(t.rows, g) }

func (t *tx) EraseGrant(id string) error {
	return store.IgnoreNotFound(grantTable.erase(t.rows, id))
}

func (t reader) Absence(who approvers.PersonID) (approvers.Absence, error) {
	return absenceTable.read(t.rows, string(who))
}

func (t reader) Absences() ([]approvers.Absence, error) { return absenceTable.every(t.rows) }

func (t *tx) PutAbsence(a approvers.Absence) error { return absenceTable.write(t.rows, a) }

func (t *tx) EraseAbsence(who approvers.PersonID) error {
	return store.IgnoreNotFound(absenceTable.erase(t.rows, string(who)))
}
