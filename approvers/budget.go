package approvers

import "time"

// BudgetFor is what a person may use up of an agent on a day.
func (p *Policy) BudgetFor(agent string) Budgets {
	if a, ok := p.Agent(agent); ok && a.Budgets != nil {
		return *a.Budgets
	}
	return p.Budgets
}

// Day is when the day began that a time lies in, and when the next one begins: days are counted in UTC.
func Day(t time.Time) (began, ends time.Time) {
	began = t.UTC().Truncate(24 * time.Hour)
	return began, began.Add(24 * time.Hour)
}
