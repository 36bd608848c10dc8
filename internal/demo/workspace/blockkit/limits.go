package blockkit

// Slack's limits, in characters unless a comment names another unit. The limits come from Slack's reference pages.
// Limits marked as undocumented were observed. For each limit, a test must try the largest legal and the smallest
// illegal case. Another test checks that each limit was tried.
const (
	MaxMessageBlocks   = 50
	maxViewBlocks      = 100
	maxSectionText     = 3000
	maxSectionFields   = 10
	maxFieldText       = 2000
	maxHeaderText      = 150
	maxContextElements = 10
	maxActionElements  = 25
	maxButtonText      = 75
	maxButtonValue     = 2000
	maxURL             = 3000
	maxAltText         = 2000
	maxIdentifier      = 255 // action_id, block_id, callback_id, external_id
	maxConfirmTitle    = 100
	maxConfirmText     = 300
	maxConfirmButton   = 30
	maxModalTitle      = 24 // title, submit, close
	maxPrivateMetadata = 3000
	maxInputText       = 3000
	maxLabel           = 2000
	maxPlaceholder     = 150
	maxOptions         = 100
	maxOptionText      = 75
	maxOptionValue     = 150
	maxOverflowOptions = 5
	maxChoices         = 10 // checkboxes and radio buttons
	maxFiles           = 10 // files in a file input
	maxVisibleTo       = 10 // people to whom an element is shown
	maxContextActions  = 5
	maxTableRows       = 100
	maxTableColumns    = 20
	maxTableText       = 10000
	MaxMarkdownText    = 12000
	maxBlocksText      = 12000 // all text of one message's blocks; undocumented
)
