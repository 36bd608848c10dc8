package view

import (
	"countersign/approvers"
	"countersign/store"
)

// mask adds the arguments that the policy in force masks to those that a request and its call mask already. If it adds
// any, it removes the preview, which may contain them. Both may be nil.
func mask(p *approvers.Policy, r *approvers.Request, c *store.Call) {
	agent := ""
	if r != nil {
		agent = r.Agent
		t, _ := p.Tool(r.Tool, agent)
		if all := approvers.Secrets(r.Secrets, t.Secrets); len(all) > len(r.Secrets) {
			r.Secrets, r.Preview = all, ""
			if r.ToolPreview != nil {
				f := *r.ToolPreview
				f.Text, f.Fault = "", ""
				r.ToolPreview = &f
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
