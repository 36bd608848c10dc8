package desk

import (
	"countersign/approvers"
	"countersign/store"
)

// veil adds to the arguments of a request and its call that are masked those which the policy names since they were proposed. A preview made before is left out
// then: it may tell them. Both may be nil.
func veil(p *approvers.Policy, r *approvers.Request, c *store.Call) {
	agent := ""
	if r != nil {
		agent = r.Agent
		t, _ := p.Tool(r.Tool, agent)
		if all := approvers.Secrets(r.Secrets, t.Secrets); len(all) > len(r.Secrets) {
			r.Secrets, r.Preview = all, ""
			if r.Forecast != nil {
				f := *r.Forecast
				f.Text, f.Fault = "", ""
				r.Forecast = &f
			}
		}
	}
	if c != nil {
		t, _ := p.Tool(c.Tool, agent)
		if all := approvers.Secrets(c.Secrets, t.Secrets); len(all) > len(c.Secrets) {
			c.Secrets, c.Preview = all, ""
		}
	}
}
