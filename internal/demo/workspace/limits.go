package workspace

// Slack's limits, except those of blocks and views (see blockkit), in characters unless said otherwise. They come from
// Slack's reference pages. A test fails if no other test tries a limit's largest legal and smallest illegal case.
const (
	maxViewStack     = 3
	maxViewBytes     = 250 * 1024
	maxPostText      = 40000 // longer text is cut; an ephemeral's fails
	maxUpdateText    = 4000  // longer text fails
	maxAttachments   = 100
	maxStreamText    = 12000     // of one append
	maxMetadataBytes = 16 * 1024 // ours: Slack documents no value for its limit
	maxLoading       = 10        // loading messages of a status
	maxQuietPeople   = 50        // of one dnd.teamInfo
	maxGroupPeople   = 8         // of a group DM, besides the app
	maxReactions     = 23        // different emoji that one member may add to a message
	maxPrompts       = 4
	maxEphemerals    = 500 // kept in a channel; ours: Slack documents no limit

	responseURLUses  = 5
	responseURLLives = 30 * 60 // seconds
)
