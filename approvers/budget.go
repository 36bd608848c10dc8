package approvers

import "time"

// BudgetFor returns a person's daily budgets for an agent.
func (p *Policy) BudgetFor(agent string) Budgets {
	if a, ok := p.Agent(agent); ok && a.Budgets != nil {
		return *a.Budgets
	}
	return p.Budgets
}

// Day returns the start of the UTC day that contains t, and the start of the next one.
func Day(t time.Time) (began, ends time.Time) {
	began = t.UTC().Truncate(24 * time.Hour)
	return began, began.Add(24 * time.Hour)
}
