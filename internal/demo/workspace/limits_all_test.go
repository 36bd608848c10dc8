package workspace

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"sync"
)

// tried are the names of the cases that ran.
var tried sync.Map

func tested(name string) { tried.Store(name, true) }

// triedLimits returns the constants of the three limits.go without a case that ran. TestMain calls it after all tests.
func triedLimits() (missing []string, err error) {
	tests := map[string]bool{}
	var constants []string
	files, err := filepath.Glob("*.go")
	if err != nil {
		return nil, err
	}
	for _, name := range append(files, "blockkit/limits.go", "delivery/limits.go") {
		file, err := parser.ParseFile(token.NewFileSet(), name, nil, 0)
		if err != nil {
			return nil, err
		}
		for _, decl := range file.Decls {
			switch d := decl.(type) {
			case *ast.FuncDecl:
				tests[d.Name.Name] = true
			case *ast.GenDecl:
				for _, spec := range d.Specs {
					if value, ok := spec.(*ast.ValueSpec); ok && filepath.Base(name) == "limits.go" {
						constants = append(constants, value.Names[0].Name)
					}
				}
			}
		}
	}
	for _, name := range constants {
		if _, ran := tried.Load(limitCases[name]); !ran && !tests[limitCases[name]] {
			missing = append(missing, name)
		}
	}
	return missing, nil
}

// limitCases names the case that tries each constant of the three limits.go. Names that begin with Test are whole tests.
var limitCases = map[string]string{
	"MaxMessageBlocks": "blocks of a message", "maxViewBlocks": "view blocks", "maxSectionText": "section text", "maxSectionFields": "fields", "maxFieldText": "field text",
	"maxHeaderText": "header", "maxContextElements": "context elements", "maxActionElements": "actions elements", "maxButtonText": "button text", "maxButtonValue": "button value",
	"maxURL": "button url", "maxAltText": "image alt text", "maxIdentifier": "action_id", "maxConfirmTitle": "confirm title", "maxConfirmText": "confirm text", "maxConfirmButton": "confirm button",
	"maxModalTitle": "view title", "maxPrivateMetadata": "view private_metadata", "maxInputText": "input text", "maxLabel": "label", "maxPlaceholder": "placeholder", "maxViewStack": "TestTheStackIsThreeHigh",
	"maxViewBytes": "view size", "maxOptions": "options", "maxOptionText": "option text", "maxOptionValue": "option value", "maxOverflowOptions": "overflow options", "maxChoices": "checkboxes",
	"maxFiles": "view files", "maxVisibleTo": "people who see an element", "maxContextActions": "context actions",
	"maxTableRows": "table rows", "maxTableColumns": "table columns", "maxTableText": "table text",
	"MaxMarkdownText": "markdown", "maxBlocksText": "TestTextLimits", "maxPostText": "TestTextLimits", "maxUpdateText": "TestTextLimits",
	"maxAttachments": "TestTextLimits", "maxStreamText": "stream text", "maxMetadataBytes": "metadata", "maxLoading": "loading messages", "maxQuietPeople": "quiet people", "maxGroupPeople": "group people",
	"maxReactions": "reactions", "maxPrompts": "prompts", "maxAckBytes": "TestBigAcknowledgementsAreDropped", "MaxSockets": "TestTenSocketsAndNoMore", "maxEphemerals": "ephemerals",
	"responseURLUses": "TestResponseURLsWorkFiveTimesAndForThirtyMinutes", "responseURLLives": "TestResponseURLsWorkFiveTimesAndForThirtyMinutes",
}
