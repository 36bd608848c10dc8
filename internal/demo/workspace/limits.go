package workspace

// Slack's limits, except for the limits of blocks and views (see blockkit). A limit is a number of characters unless
// its comment names another unit. The limits come from Slack's reference pages. For each limit, a test must try the
// largest legal and the smallest illegal case. Another test checks that each limit was tried.
const (
	maxViewStack     = 3
	maxViewBytes     = 250 * 1024
	maxPostText      = 40000 // longer text is cut, but in an ephemeral message it is an error
	maxUpdateText    = 4000  // longer text fails
	maxAttachments   = 100
	maxStreamText    = 12000     // text of one append
	maxMetadataBytes = 16 * 1024 // our own value: Slack has a limit, but documents no value
	maxLoading       = 10        // loading messages of a status
	maxQuietPeople   = 50        // people in one call of dnd.teamInfo
	maxGroupPeople   = 8         // people in a group DM, besides the app
	maxListedUsers   = 500       // users in a usergroup object; documented for the event subteam_updated
	maxReactions     = 23        // different emoji that one member may add to a message
	maxPrompts       = 4
	maxEphemerals    = 500 // ephemeral messages kept in a channel; our own limit: Slack documents none

	responseURLUses  = 5
	responseURLLives = 30 * 60 // lifetime in seconds
)
