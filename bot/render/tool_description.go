package render

import (
	"countersign/approvers"
	"countersign/approvers/workflow"
	"countersign/approvers/workflow/view"
)

// ToolDescription is what a tool's source says about the tool.
type ToolDescription struct {
	description string
	claims      []string // properties, each in a word or two
	required    []string // the arguments that the tool requires, in the order of its schema
}

// DescribeTool returns the description of a call's tool, if the tool has not changed since the call was made.
func DescribeTool(tools workflow.Tools, s view.Model) ToolDescription {
	if s.Execution == nil || tools == nil {
		return ToolDescription{}
	}
	tool, ok := tools.Tool(s.Execution.Tool)
	if !ok || tool.Hash != s.Execution.ToolHash {
		return ToolDescription{}
	}
	return ToolDescription{description: Clip(OneLine(tool.Description), MaxNote), claims: tool.Claims.Words(), required: approvers.RequiredArguments(tool.Schema)}
}
