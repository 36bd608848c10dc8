package workspace

// Slack's limits, in characters unless said otherwise. They come from Slack's
// reference pages; those marked undocumented were observed.
const (
	maxMessageBlocks   = 50
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
	maxViewStack       = 3
	maxViewBytes       = 250 * 1024
	maxOptions         = 100
	maxOptionText      = 75
	maxOptionValue     = 150
	maxOverflowOptions = 5
	maxChoices         = 10 // checkboxes and radio buttons
	maxFiles           = 10 // of a file input
	maxVisibleTo       = 10 // people to whom an element is shown
	maxContextActions  = 5
	maxCardTitle       = 150 // also of containers and layouts
	maxCardText        = 200
	maxCardActions     = 3
	maxCarouselCards   = 10
	maxAlertText       = 200
	maxChildBlocks     = 10 // of a container
	maxLayoutRows      = 5
	maxLayoutItems     = 3
	maxVideoText       = 200
	maxVideoName       = 50
	maxTableRows       = 100
	maxTableColumns    = 20
	maxTableText       = 10000
	maxDataTableRows   = 201
	maxDataTableText   = 20000
	maxPageSize        = 100
	maxChartTitle      = 50 // also of an axis
	maxChartLabel      = 20
	maxChartSeries     = 12 // also segments of a pie
	maxChartPoints     = 20
	maxMarkdownText    = 12000
	maxBlocksText      = 12000 // all text of one message's blocks; undocumented
	maxPostText        = 40000 // longer text is cut; an ephemeral's fails
	maxUpdateText      = 4000  // longer text fails
	maxAttachments     = 100
	maxStreamText      = 12000     // of one append
	maxMetadataBytes   = 16 * 1024 // ours: Slack says that there is a limit, and not which
	maxLoading         = 10        // loading messages of a status
	maxQuietPeople     = 50        // of one dnd.teamInfo
	maxGroupPeople     = 8         // of a group DM, besides the app
	maxReactions       = 23        // different emoji that one member may add to a message
	maxPrompts         = 4
	maxAckBytes        = 20 * 1024 // of a Socket Mode acknowledgement; bigger ones are dropped
	maxSockets         = 10
	maxEphemerals      = 500 // kept in a channel; ours: Slack promises none

	responseURLUses  = 5
	responseURLLives = 30 * 60 // seconds
)
