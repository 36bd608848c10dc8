package view

import (
	"countersign/approvers"
	"countersign/store"
)

// mask extends the lists of masked arguments (Secrets) of a request and its call by the arguments that the policy in
// force masks. If this adds an argument to a list, mask also removes the preview, because the preview may contain the
// argument's value. r and c may be nil.
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
