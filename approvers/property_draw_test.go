package approvers_test

import (
	"fmt"
	"slices"
	"time"

	"pgregory.net/rapid"

	"countersign/approvers"
)

// Random policies are built from these values. There are few values of each kind, so different policies often use the
// same values.
var (
	someUsers  = []string{"U1", "U2", "U3", "U4", "U5", "U6"}
	someGroups = []string{"g1", "g2"}
	someMails  = []string{"a@example.com", "b@example.com"}
	someTools  = []string{"t1", "t2"}
	someRoles  = []string{"r1", "r2", "r3", "r4"}
	someTimes  = []time.Duration{5 * time.Minute, 20 * time.Minute, time.Hour, 5 * time.Hour}
)

// The function draws one of the given values.
func one[V any](t *rapid.T, label string, of ...V) V { return rapid.SampledFrom(of).Draw(t, label) }

// oneIn returns true in one of n cases, on average.
func oneIn(t *rapid.T, n int, label string) bool { return rapid.IntRange(1, n).Draw(t, label) == n }

func drawRisk(t *rapid.T, label string) approvers.Risk {
	return approvers.Risk(rapid.IntRange(int(approvers.Low), int(approvers.Critical)).Draw(t, label))
}

// drawPolicy returns a random policy with two tools and up to four roles. Some policies are invalid: they have stages
// that nobody can pass, circular leads, or stages that name unknown roles.
func drawPolicy(t *rapid.T, n int) *approvers.Policy {
	d := drawTool(t)
	p := &approvers.Policy{Hash: fmt.Sprint("policy-", n), Defaults: approvers.Defaults{
		ExpiresAfter: 30 * time.Minute, EscalateAfter: 10 * time.Minute, RunWithin: 15 * time.Minute,
		RemindAfter: d.RemindAfter, Reminders: d.Reminders, Repeat: d.Repeat, OnExpiry: d.OnExpiry,
		UnknownTool: approvers.ToolPolicy{Risk: approvers.Critical, Confirm: true},
	}}
	for _, name := range someRoles {
		if !oneIn(t, 20, "gone") {
			p.Approvers = append(p.Approvers, drawRole(t, name))
		}
	}
	for _, name := range someTools {
		tool := drawTool(t)
		tool.Name = name
		p.Tools = append(p.Tools, tool)
	}
	p.Agents = []approvers.Agent{{Name: "support"}, {Name: "other"}}
	if oneIn(t, 4, "overrides") {
		p.Agents[0].Overrides = map[string]approvers.Override{"t1": drawOverride(t)}
		p.NeverLoosen = one(t, "never_loosen", nil, nil, []string{"t1"}, []string{"*"})
	}
	if oneIn(t, 60, "observe") {
		p.Mode = approvers.Observe
	}
	return p
}

func drawRole(t *rapid.T, name string) approvers.Role {
	member := rapid.Custom(func(t *rapid.T) approvers.Member {
		switch rapid.IntRange(0, 5).Draw(t, "kind") {
		case 0:
			return approvers.Member{Kind: approvers.MemberGroup, Value: one(t, "group", someGroups...)}
		case 1:
			return approvers.Member{Kind: approvers.MemberEmail, Value: one(t, "mail", someMails...)}
		}
		return approvers.Member{Kind: approvers.MemberUser, Value: one(t, "user", someUsers...)}
	})
	role := approvers.Role{
		Name: name, Title: name, MaxRisk: max(drawRisk(t, "ceiling"), drawRisk(t, "ceiling")),
		Members:    rapid.SliceOfN(member, 1, 5).Draw(t, "members"),
		CanApprove: one(t, "tools", []string{"*"}, []string{"*"}, []string{"*"}, []string{"*"}, []string{"t1"}, []string{"t2"}, []string{"t1", "t2"}),
		Lead:       one(t, "lead", append([]string{""}, someRoles...)...),
	}
	if oneIn(t, 4, "hours") {
		role.Hours = drawHours(t)
	}
	return role
}

// drawHours returns working hours that begin and end on the full hour. The model's computation of working time relies
// on full hours.
func drawHours(t *rapid.T) *approvers.Hours {
	h := &approvers.Hours{
		Zone: one(t, "zone", someZones...), From: one[time.Duration](t, "from", 0, 7, 9) * time.Hour, To: one[time.Duration](t, "to", 12, 17, 24) * time.Hour,
		Holidays: one(t, "holidays", nil, []string{"2026-03-30", "2026-03-31"}, []string{"2026-03-27"}),
		Outside:  one(t, "outside", approvers.OutsideWaits, approvers.OutsideEscalates),
	}
	for day := range h.Days {
		h.Days[day] = day == int(time.Friday) || rapid.Bool().Draw(t, "works")
	}
	return h
}

var someZones = []*time.Location{time.UTC, zoneNamed("Europe/Berlin"), zoneNamed("America/New_York")}

func zoneNamed(name string) *time.Location {
	z, err := time.LoadLocation(name)
	if err != nil {
		panic(err)
	}
	return z
}

func drawTool(t *rapid.T) approvers.ToolPolicy {
	tool := approvers.ToolPolicy{Risk: drawRisk(t, "risk"), Confirm: !oneIn(t, 5, "unconfirmed"), SelfApproval: oneIn(t, 5, "self"), BreakGlass: oneIn(t, 2, "glass")}
	if oneIn(t, 3, "masked") {
		tool.Secrets, tool.Blind = []string{"amount"}, oneIn(t, 3, "blind")
	}
	if rapid.Bool().Draw(t, "staged") {
		tool.Stages = drawStages(t)
	}
	if rapid.Bool().Draw(t, "ruled") {
		tool.Rules = append(tool.Rules, drawRule(t))
	}
	if rapid.Bool().Draw(t, "timed") {
		tool.ExpiresAfter, tool.EscalateAfter = one(t, "expires", someTimes...), one(t, "escalate", someTimes...)
		tool.RemindAfter, tool.Reminders = one(t, "remind", someTimes...), rapid.IntRange(0, 3).Draw(t, "reminders")
		tool.Repeat, tool.RunWithin = one(t, "repeat", -1, 0, 1, 2), one(t, "run", someTimes...)
		tool.OnExpiry = one(t, "on_expiry", "", approvers.ExpiryRejects, approvers.ExpiryEscalates, approvers.ExpiryEscalates)
	}
	if oneIn(t, 60, "observe") {
		tool.Mode = approvers.Observe
	}
	return tool
}

func drawRule(t *rapid.T) approvers.Rule {
	r := approvers.Rule{When: one(t, "when", amountAbove(500), amountAbove(500), always, failing), Confirm: rapid.Bool().Draw(t, "confirm")}
	if rapid.Bool().Draw(t, "raises") {
		r.Risk = drawRisk(t, "to")
	}
	if rapid.Bool().Draw(t, "adds") {
		r.Stages = drawStages(t)
	}
	return r
}

// drawStages returns up to three stages, each for different people.
func drawStages(t *rapid.T) []approvers.Stage {
	return rapid.SliceOfNDistinct(rapid.Custom(drawStage), 1, 3, func(s approvers.Stage) string {
		roles := slices.Sorted(slices.Values(s.Roles()))
		return fmt.Sprint(roles, s.Group)
	}).Draw(t, "stages")
}

func drawStage(t *rapid.T) approvers.Stage {
	s := approvers.Stage{Approver: one(t, "approver", someRoles...), Quorum: one(t, "quorum", 1, 1, 1, 2, 2, 3)}
	switch rapid.IntRange(0, 7).Draw(t, "of") {
	case 0, 1:
		s.Or = slices.DeleteFunc([]string{one(t, "or", someRoles...)}, func(name string) bool { return name == s.Approver })
	case 2:
		s.Or = slices.DeleteFunc(slices.Clone(someRoles), func(name string) bool { return name == s.Approver })
	case 3:
		s.Group = one(t, "group", someGroups...)
	case 4:
		s.Approver, s.Group = "", one(t, "group", someGroups...)
	}
	if rapid.Bool().Draw(t, "several") {
		s.Rejects = rapid.IntRange(1, 3).Draw(t, "rejects")
	}
	if oneIn(t, 4, "timed") {
		s.ExpiresAfter, s.EscalateAfter = one(t, "expires", someTimes...), one(t, "escalate", someTimes...)
	}
	return s
}

func drawOverride(t *rapid.T) approvers.Override {
	var o approvers.Override
	if rapid.Bool().Draw(t, "risk") {
		o.Risk = drawRisk(t, "risk")
	}
	if rapid.Bool().Draw(t, "confirms") {
		confirm := rapid.Bool().Draw(t, "confirm")
		o.Confirm = &confirm
	}
	if rapid.Bool().Draw(t, "staged") {
		o.Stages = drawStages(t)
	}
	if oneIn(t, 20, "mode") {
		mode := one(t, "mode", approvers.Enforce, approvers.Observe)
		o.Mode = &mode
	}
	if oneIn(t, 4, "breaks glass") {
		glass := rapid.Bool().Draw(t, "glass")
		o.Glass = &glass
	}
	return o
}

// drawPeople creates all people that the policies can name, one more person, and some variants of these people who may
// not decide, such as guests.
func drawPeople(t *rapid.T) []approvers.Identity {
	var out []approvers.Identity
	for _, u := range append([]string{"U9"}, someUsers...) {
		who := approvers.Identity{ID: approvers.Who("T1", u), Name: u}
		who.Groups = one(t, "in", nil, []string{"g1"}, []string{"g2"}, []string{"g1", "g2"})
		who.Email = one(t, "address", append([]string{"", ""}, someMails...)...)
		out = append(out, who)
		switch rapid.IntRange(0, 11).Draw(t, "like") {
		case 0:
			who.Guest = true
		case 1:
			who.Bot = true
		case 2:
			who.Deleted = true
		case 3:
			who.Foreign = true
		case 4:
			who.ID = ""
		case 5:
			who.ID = approvers.Who("T2", u)
			who.Foreign = true
		default:
			continue
		}
		out = append(out, who)
	}
	return out
}

func drawArgs(t *rapid.T) string {
	return fmt.Sprintf(`{"amount":%d}`, one(t, "amount", 1, 500, 501, 900))
}
