package workspace

import "time"

// shortLived keeps things by a secret name until they are long past their time. It
// remembers them a little beyond their end, so that "too late" can be told from "never".
type shortLived[T any] struct {
	byName map[string]T
	order  []ending // oldest first: all live equally long
}

type ending struct {
	name string
	at   time.Time
}

const remembered = 10 * time.Minute

func newShortLived[T any]() *shortLived[T] { return &shortLived[T]{byName: map[string]T{}} }

// put adds a thing that ends at the given time, and forgets what ended long ago.
func (s *shortLived[T]) put(name string, thing T, end, now time.Time) {
	gone := 0
	for gone < len(s.order) && now.Sub(s.order[gone].at) > remembered {
		delete(s.byName, s.order[gone].name)
		gone++
	}
	s.order = append(s.order[gone:], ending{name, end})
	s.byName[name] = thing
}
