package workspace

import (
	"encoding/json"
	"strings"

	"countersign/internal/demo/workspace/wire"
)

// getFaults is GET /faults: what will still go wrong.
func (s *Server) getFaults(*personCall) (object, *apiError) {
	return object{"faults": s.faults.pending(), "real_rates": s.rates.active(), "sockets": s.hub.Sockets()}, nil
}

// postFault is POST /faults: one switch, named by "fault".
func (s *Server) postFault(p *personCall) (object, *apiError) {
	var err error
	switch name := p.text("fault"); name {
	case "clear":
		s.ClearFaults()
	case "real_rates":
		s.SetRealRates(!p.has("on") || p.flag("on"))
	case "drop_sockets":
		s.DropSockets()
	case "disconnect":
		reason := p.text("reason")
		if reason == "" {
			reason = "refresh_requested"
		}
		err = s.Disconnect(reason)
	case "user":
		var c UserChange
		if err = rebind(p.values["set"], &c); err == nil {
			err = s.ChangeUser(p.text("user"), c)
		}
	case "group":
		err = s.SetGroupUsers(p.text("group"), p.words("users"))
	case "share":
		err = s.ShareChannel(p.text("channel"), !p.has("on") || p.flag("on"))
	default:
		var f Fault
		if err = rebind(p.values, &f); err == nil {
			err = s.Inject(f)
		}
	}
	if err != nil {
		return nil, refuse("invalid_fault", err.Error())
	}
	return s.getFaults(p)
}

// rebind reads decoded JSON into a struct; names that it doesn't have are errors.
func rebind(v any, into any) error {
	dec := json.NewDecoder(strings.NewReader(string(wire.Encode(v))))
	dec.DisallowUnknownFields()
	return dec.Decode(into)
}
