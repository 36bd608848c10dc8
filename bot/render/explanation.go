package render

import (
	"fmt"

	"countersign/approvers"
)

// Explanation draws who has to allow a request, why, and what has happened so far.
func (v View) Explanation(p *BlockBuilder, r approvers.Request, records []approvers.AuditRecord) {
	sign, risk := riskWords(r.Plan.Risk, r.Effect)
	p.Para(new(RichText).Strong(Clip(whatHappens(r.Preview, r.Tool), maxHeadline)), Say(sign+" "+risk+" · ").Code(Name(r.Tool)), new(RichText).soft("Request "+r.ID))
	p.Para(Say("🧭 Why people are asked: " + inWords(r.Plan.Why) + "."))
	var who []*RichText
	for i, st := range r.Plan.Stages {
		if i == maxStagesTold {
			who = append(who, Say("… and "+Plural(len(r.Plan.Stages)-i, "more stage")))
			break
		}
		line := Say(fmt.Sprintf("👥 Stage %d of %d: %s · ", i+1, len(r.Plan.Stages), howMany(st.Quorum))).also(v.deciders(st))
		if i == r.Stage && r.State == approvers.Pending {
			line.Say(v.joined(r)).also(v.invited(r)).Strong(" · here it waits").Say(fmt.Sprintf(", %d agreed", r.At(i)))
		}
		who = append(who, line)
	}
	p.Para(who...)
	if !r.Plan.SelfOK {
		p.Para(Say("Those who asked for it can't decide it."))
	}
	if r.State == approvers.Pending {
		p.Para(v.otherwise(r)...)
	} else {
		p.Para(Say(endSign[r.State] + " ").also(v.ending(r)))
	}
	lines, _ := Newest(v.Timeline(records), 0)
	p.Para(append([]*RichText{new(RichText).Strong("What has happened so far:")}, lines...)...)
}

// howMany says how many people a stage requires.
func howMany(quorum int) string {
	if quorum < 2 {
		return "1 person"
	}
	return fmt.Sprintf("%d people", quorum)
}

// deciders names the people of a stage: each role with its members in the policy.
func (v View) deciders(st approvers.Stage) *RichText {
	out := new(RichText)
	for i, named := range st.Roles() {
		if i > 0 {
			out.Say(" or ")
		}
		out.Strong(v.title(named))
		role, ok := v.Policy.Role(named)
		if !ok {
			continue
		}
		for j, m := range role.Members {
			if j == maxPeopleTold {
				out.Say(fmt.Sprintf(" and %d more", len(role.Members)-j))
				break
			}
			out.Say(map[bool]string{true: ": ", false: ", "}[j == 0])
			switch m.Kind {
			case approvers.MemberUser:
				out.Person(approvers.PersonID(m.Value), "")
			case approvers.MemberGroup:
				out.Say("the user group @" + Name(m.Value))
			default:
				out.Say(Name(m.Value))
			}
		}
	}
	if st.Group != "" {
		out.Say(", of the user group @" + Name(st.Group))
	}
	return out
}

// PlanOutlook says how a call would be handled.
func (v View) PlanOutlook(p *BlockBuilder, plan approvers.Plan) {
	switch plan.Verdict {
	case approvers.Auto:
		p.Para(Say("✅ ").Strong("It would run without asking anybody."))
	case approvers.Refuse:
		p.Para(Say("🚫 ").Strong("It would be refused: nobody could allow it.").Say(" Whoever runs me can change the policy."))
	case approvers.Observed:
		p.Para(Say("👁️ ").Strong("It would not be run: the policy only observes it for now."))
	default:
		lines := []*RichText{Say("✋ ").Strong("It would wait for people.")}
		for i, st := range plan.Stages {
			lines = append(lines, Say(fmt.Sprintf("👥 Stage %d of %d: %s · ", i+1, len(plan.Stages), howMany(st.Quorum))).also(v.deciders(st)))
		}
		if !plan.SelfOK {
			lines = append(lines, Say("You could not allow it yourself."))
		}
		p.Para(lines...)
	}
}
