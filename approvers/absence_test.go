package approvers_test

import (
	"reflect"
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
			a, denied := approvers.Leave(deciding(example(), start), tt.who, start.Add(tt.from), start.Add(tt.until), tt.delegate)
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
			if a.During(a.From.Add(-time.Microsecond)) || !a.During(a.From) || !a.During(a.Until.Add(-time.Microsecond)) || a.During(a.Until) {
				t.Errorf("%+v covers the wrong times", a)
			}
			if tt.delegate != nil && (a.Delegate != tt.delegate.ID || a.DelegateName != tt.delegate.Name) {
				t.Errorf("%+v", a)
			}
			for _, at := range []time.Time{a.From.Add(-hour), a.From.Add(hour)} {
				if b := a.Back(at); !b.Over(at) || b.During(at) || b.During(a.From.Add(2*hour)) || b.Until.Before(b.From) {
					t.Errorf("back at %s: %+v", at, b)
				}
			}
		})
	}
}

// TestCovers checks which roles of an absent person a stand-in covers, and up to which ceiling.
func TestCovers(t *testing.T) {
	p := example()
	p.Approvers = append(p.Approvers,
		approvers.Role{Name: "mail", Members: users("U0001", "U0005"), MaxRisk: approvers.High, CanApprove: []string{"send_email"}},
		approvers.Role{Name: "deputy", Members: users("U0006"), MaxRisk: approvers.High, CanApprove: []string{"*"}})
	tests := []struct {
		name          string
		away, standIn approvers.Identity
		want          []approvers.Cover
	}{
		{"a peer", onFin1, onFin2, []approvers.Cover{{Role: "finance-director"}}},
		{"a ceiling above", onLead, onFin1, []approvers.Cover{{Role: "team-lead"}}},
		{"a ceiling below", onFin1, onLead, []approvers.Cover{{Role: "finance-director", None: true}}},
		{"nobody's role", onFin1, bystander, []approvers.Cover{{Role: "finance-director", None: true}}},
		{"some of the tools", onLead, person("U0005"), []approvers.Cover{{Role: "team-lead",
			Lacks: []string{"update_shipping_address", "apply_discount", "issue_refund", "delete_account"}}}},
		{"several roles", onSupport, person("U0006"), []approvers.Cover{{Role: "support-agent"}, {Role: "mail"}}},
		{"somebody without a role", bystander, onFin1, nil},
	}
	for _, tt := range tests {
		a, denied := approvers.Leave(deciding(p, start), tt.away, start, start.Add(hour), &tt.standIn)
		if denied != nil {
			t.Fatal(denied)
		}
		if !reflect.DeepEqual(a.Covers, tt.want) {
			t.Errorf("%s: %+v; want %+v", tt.name, a.Covers, tt.want)
		}
	}
}
