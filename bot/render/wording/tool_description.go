package wording

import (
	"countersign/approvers"
	"countersign/approvers/workflow"
	"countersign/approvers/workflow/view"
	"countersign/bot/render/block"
)

// ToolDescription is what a tool's source says about the tool.
type ToolDescription struct {
	Text     string   // the tool's description on one line, cut to MaxNote characters
	Claims   []string // the properties that the source claims, each in a word or two
	Required []string // the arguments that the tool requires, in the order of its schema
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
	return ToolDescription{Text: block.Clip(block.OneLine(tool.Description), block.MaxNote), Claims: tool.Claims.Words(), Required: approvers.RequiredArguments(tool.Schema)}
}
