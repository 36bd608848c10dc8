package transport

import "sync"

// gate accepts deliveries while it is open.
type gate struct {
	mu     sync.Mutex
	isOpen bool
	inside sync.WaitGroup // deliveries that were accepted and have not left
}

func (g *gate) open() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.isOpen = true
}

// shut refuses further deliveries. shut waits until all accepted deliveries have left.
func (g *gate) shut() {
	g.mu.Lock()
	g.isOpen = false
	g.mu.Unlock()
	g.inside.Wait()
}

func (g *gate) opened() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.isOpen
}

// enter reports whether a delivery is accepted. If enter returns true, the caller must call leave after the delivery.
func (g *gate) enter() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.isOpen {
		g.inside.Add(1)
	}
	return g.isOpen
}

func (g *gate) leave() { g.inside.Done() }
