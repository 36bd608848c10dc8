package main

import (
	"encoding/json"
	"fmt"
	"strings"

	"countersign/agent/catalog"
	"countersign/agent/pins"
	"countersign/approvers"
	"countersign/cmd/countersign/cli"
	"countersign/cmd/countersign/policyfile"
	"countersign/config/check"
	"countersign/internal/demo/workspace"
)

// ownHint returns the introduction that the page shows for the user's own policy file.
func ownHint(path string, tools *catalog.Catalog) (hint workspace.SeedHint, err error) {
	file, err := check.Read(path)
	if err != nil {
		return hint, cli.Misused("the policy can't be used:\n%w", err)
	}
	lock, err := catalog.ReadLock(path)
	if err != nil {
		return hint, policyfile.Misconfigured(err)
	}
	known, err := tools.Known(file, lock, pins.Beside(path))
	if err != nil {
		return hint, policyfile.Misconfigured(err)
	}
	return suggestCalls(file.Policy, known), nil
}

// suggestCalls returns an introduction with calls to the policy's tools. The introduction is empty if none of the tools
// can be called.
func suggestCalls(p *approvers.Policy, known []check.Tool) workspace.SeedHint {
	var alone, waiting string // the first tool that runs without approval, and the first tool that waits for approval
	var role string
	for _, t := range p.Tools {
		example, ok := exampleCall(t.Name, known)
		if !ok {
			continue
		}
		agent := ""
		if len(p.Agents) > 0 {
			agent = p.Agents[0].Name
		}
		plan := p.Plan(approvers.Call{Tool: t.Name, Facts: approvers.Facts{Agent: agent, Args: map[string]any{}}})
		switch {
		case plan.Verdict == approvers.Auto && alone == "":
			alone = example
		case plan.Verdict == approvers.Ask && waiting == "":
			waiting, role = example, plan.Stages[0].Title(p)
		}
	}
	hint := workspace.DemoSeed().Hint
	hint.Lines = nil
	if alone != "" {
		hint.Lines = append(hint.Lines, fmt.Sprintf("This is your own policy, and you are *Sam*. A call that runs without asking: `%s`", alone))
	}
	if waiting != "" {
		hint.Lines = append(hint.Lines, fmt.Sprintf("A call that waits for *%s*: `%s`", role, waiting), "Switch to an approver at the left. The card is where your policy posts it.")
	}
	if len(hint.Lines) == 0 {
		return workspace.SeedHint{}
	}
	hint.Lines = append(hint.Lines, "Write a value in place of each … before you send it.")
	return hint
}

// exampleCall writes a call to a tool with the arguments that its schema requires. exampleCall returns false for a
// built-in tool, and for a tool that no source offers.
func exampleCall(name string, known []check.Tool) (string, bool) {
	if _, builtIn := approvers.BuiltIn(name); builtIn {
		return "", false
	}
	for _, t := range known {
		if t.Name != name {
			continue
		}
		var schema struct {
			Required []string `json:"required"`
		}
		_ = json.Unmarshal(t.Schema, &schema) // without a readable schema no argument is suggested
		words := []string{"@Countersign call", name}
		for _, arg := range schema.Required {
			words = append(words, arg+"=…")
		}
		return strings.Join(words, " "), true
	}
	return "", false
}
