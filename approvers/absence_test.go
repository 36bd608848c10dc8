package approvers_test

import (
	"slices"
	"testing"
	"time"

	"countersign/approvers"
)

func TestLeave(t *testing.T) {
	day := 24 * hour
	tests := []struct {
		name        string
		who         approvers.Identity
		from, until time.Duration // since start, which is now
		delegate    *approvers.Identity
		code        approvers.Code
		detail      approvers.Code
	}{
		{name: "from now on", who: onLead, until: day},
		{name: "later", who: onLead, from: day, until: 2 * day, delegate: &onFin1},
		{name: "it began before now", who: onLead, from: -day, until: day},
		{name: "it ends before it begins", who: onLead, from: 2 * day, until: day, code: approvers.DeniedDates},
		{name: "it is over", who: onLead, from: -2 * day, until: -day, code: approvers.DeniedDates},
		{name: "it ends now", who: onLead, from: -day, until: 0, code: approvers.DeniedDates},
		{name: "a century", who: onLead, until: 36500 * day, code: approvers.DeniedDates},
		{name: "a guest", who: approvers.Identity{ID: onLead.ID, Guest: true}, until: day, code: approvers.DeniedGuest},
		{name: "nobody", until: day, code: approvers.DeniedUnidentified},
		{name: "oneself as the stand-in", who: onLead, until: day, delegate: &onLead, code: approvers.DeniedStandIn, detail: approvers.DeniedSelf},
		{name: "a bot", who: onLead, until: day, delegate: &approvers.Identity{ID: "T0001/UBOT", Bot: true}, code: approvers.DeniedStandIn, detail: approvers.DeniedBot},
		{name: "a guest as the stand-in", who: onLead, until: day, delegate: &approvers.Identity{ID: "T0001/U1", Guest: true}, code: approvers.DeniedStandIn, detail: approvers.DeniedGuest},
		{name: "somebody unknown", who: onLead, until: day, delegate: &approvers.Identity{}, code: approvers.DeniedStandIn, detail: approvers.DeniedUnidentified},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			a, denied := approvers.Leave(start, tt.who, start.Add(tt.from), start.Add(tt.until), tt.delegate)
			if tt.code != "" {
				wantDenied(t, denied, tt.code)
				if denied.Detail != string(tt.detail) {
					t.Errorf("because of %q; want %q", denied.Detail, tt.detail)
				}
				return
			}
			if denied != nil {
				t.Fatal(denied)
			}
			if a.Covers(a.From.Add(-time.Microsecond)) || !a.Covers(a.From) || !a.Covers(a.Until.Add(-time.Microsecond)) || a.Covers(a.Until) {
				t.Errorf("%+v covers the wrong times", a)
			}
			if tt.delegate != nil && (a.Delegate != tt.delegate.ID || a.DelegateName != tt.delegate.Name) {
				t.Errorf("%+v", a)
			}
			for _, at := range []time.Time{a.From.Add(-hour), a.From.Add(hour)} {
				if b := a.Back(at); !b.Over(at) || b.Covers(at) || b.Covers(a.From.Add(2*hour)) || b.Until.Before(b.From) {
					t.Errorf("back at %s: %+v", at, b)
				}
			}
		})
	}
}

func TestLacks(t *testing.T) {
	p := example()
	tests := []struct {
		role  string
		who   approvers.Identity
		lacks []string
		all   bool
	}{
		{role: "team-lead", who: onFin1},
		{role: "finance-director", who: onFin2},
		{role: "support-agent", who: onLead},
		{role: "team-lead", who: onSupport, all: true, lacks: p.Approvers[1].CanApprove},
		{role: "finance-director", who: bystander, all: true},
		{role: "finance-director", who: onLead, all: true}, // the ceiling is too low for each
	}
	for _, tt := range tests {
		role, _ := p.Role(tt.role)
		lacks, all := p.Lacks(role, tt.who)
		if all != tt.all || tt.lacks != nil && !slices.Equal(lacks, tt.lacks) || !tt.all && len(lacks) > 0 {
			t.Errorf("%s for %s lacks %v (all: %t)", tt.who.Name, tt.role, lacks, all)
		}
	}
	p.Approvers = append(p.Approvers, approvers.Role{Name: "mail", Members: users("U0001"), MaxRisk: approvers.High, CanApprove: []string{"send_email"}})
	role, _ := p.Role("team-lead")
	if lacks, all := p.Lacks(role, onSupport); all || slices.Contains(lacks, "send_email") || len(lacks) != 4 {
		t.Errorf("lacks %v (all: %t)", lacks, all)
	}
}
