package bolt

import (
	"bytes"
	"fmt"

	"countersign/store"
)

var surfaceTable = &table[store.Surface]{
	in: surfaces, name: "surface",
	id:      func(s *store.Surface) (string, *uint64) { return s.ID, &s.Version },
	indexes: []bucket{surfaceRef, surfaceMessage},
	index: func(s *store.Surface, birth uint64) []row {
		rows := []row{{surfaceRef, number(text(nil, s.Ref), birth)}}
		if s.Channel != "" && s.TS != "" {
			rows = append(rows, row{surfaceMessage, number(text(text(nil, s.Channel), s.TS), birth)})
		}
		return rows
	},
}

func (t reader) Surface(id string) (store.Surface, error) { return surfaceTable.read(t.rows, id) }

func (t reader) SurfacesOf(ref string) ([]store.Surface, error) {
	return surfaceTable.all(t.rows, t.rows.scan(surfaceRef, text(nil, ref), nil), noLimit)
}

func (t reader) SurfaceAt(channel, ts string) (store.Surface, error) {
	_, id := t.rows.last(surfaceMessage, text(text(nil, channel), ts))
	if id == nil {
		return store.Surface{}, fmt.Errorf("surface at %s %s: %w", channel, ts, store.ErrNotFound)
	}
	return surfaceTable.read(t.rows, string(id))
}

func (t *tx) PutSurface(s store.Surface) error { return surfaceTable.write(t.rows, s) }

func (t reader) Rendering(surface string, post uint64) (store.Rendering, error) {
	var r store.Rendering
	v := t.rows.get(renderings, number(text(nil, surface), post))
	if v == nil {
		return r, fmt.Errorf("rendering %d of surface %q: %w", post, surface, store.ErrNotFound)
	}
	err := decode(v, &r)
	return r, err
}

func (t reader) Renderings(surface string) ([]store.Rendering, error) {
	return list[store.Rendering](t.rows.scan(renderings, text(nil, surface), nil))
}

func (t *tx) PutRendering(r store.Rendering) error {
	if err := keyable("rendering's surface", r.Surface); err != nil {
		return err
	}
	key := number(text(nil, r.Surface), r.Post)
	if t.rows.get(renderings, key) != nil {
		return fmt.Errorf("rendering %d of surface %q is there already: %w", r.Post, r.Surface, store.ErrConflict)
	}
	return put(t.rows, renderings, key, &r)
}

func (t *tx) EraseRenderings(surface string, below uint64) (int, error) {
	var keys, values [][]byte
	end := number(text(nil, surface), below)
	for k, v := range t.rows.scan(renderings, text(nil, surface), nil) {
		if below > 0 && bytes.Compare(k, end) >= 0 {
			break
		}
		keys, values = append(keys, k), append(values, v)
	}
	return len(keys), t.rows.removeAll(renderings, keys, values)
}
