package approvers

// MayPause says why a person may not stop everything, or let it go on, under the policy as it is now: nil for people of the roles that it
// names for that.
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
