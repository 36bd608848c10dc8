package workspace

import (
	"fmt"
	"slices"
)

// Inject switches a fault on.
func (s *Server) Inject(f Fault) error {
	if err := f.validate(); err != nil {
		return err
	}
	s.faults.add(f)
	return nil
}

// ClearFaults forgets every fault that has not happened yet, and the rate limits.
func (s *Server) ClearFaults() {
	s.faults.clear()
	s.rates.set(false)
}

// SetRealRates turns Slack's published rate limits on or off.
func (s *Server) SetRealRates(on bool) { s.rates.set(on) }

// DropSockets breaks every socket as a network failure does.
func (s *Server) DropSockets() { s.hub.Drop() }

// Disconnect asks the app to reconnect, as Slack does every few hours: reason is
// refresh_requested, warning or link_disabled.
func (s *Server) Disconnect(reason string) error {
	if !slices.Contains([]string{"refresh_requested", "warning", "link_disabled"}, reason) {
		return fmt.Errorf("there is no reason %q to disconnect: use refresh_requested, warning or link_disabled", reason)
	}
	s.hub.Disconnect(reason)
	return nil
}

// Refresh asks the app to reconnect the socket that it has had for longest, as Slack does with one after the other.
func (s *Server) Refresh() {
	s.hub.Refresh()
}

// Sockets is how many sockets the app has open.
func (s *Server) Sockets() int { return s.hub.Sockets() }
