package approvers

// MayPause returns why a person may not pause or resume everything under the current policy, or nil. People of the
// roles that the policy names for this may.
func (p *Policy) MayPause(who Identity) *Denied {
	if code := who.trouble(); code != "" {
		return &Denied{Code: code}
	}
	for _, name := range p.PausedBy {
		if role, ok := p.Role(name); ok && role.Holds(who) {
			return nil
		}
	}
	return &Denied{Code: DeniedNoPause}
}
