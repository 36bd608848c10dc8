package workspace

import (
	"slices"

	"countersign/internal/demo/workspace/blockkit"
)

// channel is a channel, a DM (IM) or a group DM (MPIM).
type channel struct {
	ID       string   `json:"id"`
	Name     string   `json:"name"`
	Topic    string   `json:"topic"`
	Purpose  string   `json:"purpose"`
	Creator  string   `json:"creator"`
	Created  int64    `json:"created"`
	Private  bool     `json:"private"`
	Archived bool     `json:"archived"`
	General  bool     `json:"general"`
	Shared   bool     `json:"shared"`
	IM       bool     `json:"im"`
	MPIM     bool     `json:"mpim"`
	Members  []string `json:"members"`

	// Messages are all messages, replies included, oldest first.
	Messages []*message `json:"messages"`
	// LastRead is the newest ts that a person has seen, by person, and for replies by person and thread (see
	// threadKey).
	LastRead map[string]string `json:"last_read"`
	// Threads is the data that an assistant set for a thread, by the thread's ts.
	Threads map[string]*threadInfo `json:"threads"`

	byTS       map[string]*message
	byThread   map[string][]*message // replies without the parent, oldest first
	ephemerals []*message            // shown to one person, and lost at a restart as in Slack
	// chosen holds the choices in messages' inputs, by message and person.
	chosen map[string]blockkit.State
}

// threadInfo is the data set by assistant.threads.*. Status expires after a short time.
type threadInfo struct {
	Title       string   `json:"title,omitempty"`
	PromptTitle string   `json:"prompt_title,omitempty"`
	Prompts     []object `json:"prompts,omitempty"`
	status      string
	loading     []string
	statusUntil int64 // microseconds
}

func (c *channel) index() {
	c.byTS = make(map[string]*message, len(c.Messages))
	c.byThread = map[string][]*message{}
	for _, m := range c.Messages {
		c.byTS[m.TS] = m
		if m.reply() {
			c.byThread[m.ThreadTS] = append(c.byThread[m.ThreadTS], m)
		}
	}
	if c.LastRead == nil {
		c.LastRead = map[string]string{}
	}
	if c.Threads == nil {
		c.Threads = map[string]*threadInfo{}
	}
}

func (c *channel) has(user string) bool { return slices.Contains(c.Members, user) }

// kind is the channel_type of events.
func (c *channel) kind() string {
	switch {
	case c.IM:
		return "im"
	case c.MPIM:
		return "mpim"
	case c.Private:
		return "group"
	default:
		return "channel"
	}
}

// eventNamed returns the name of an event about a whole channel. Private channels have their own names.
func (c *channel) eventNamed(what string) string {
	if c.Private {
		return "group_" + what
	}
	return "channel_" + what
}

// other returns the second member of a DM.
func (c *channel) other(user string) string {
	for _, m := range c.Members {
		if m != user {
			return m
		}
	}
	return user // the DM with oneself
}

func (c *channel) add(m *message) {
	c.Messages = append(c.Messages, m)
	c.byTS[m.TS] = m
	if m.reply() {
		c.byThread[m.ThreadTS] = append(c.byThread[m.ThreadTS], m)
	}
}

func (c *channel) remove(m *message) {
	same := func(other *message) bool { return other == m }
	delete(c.byTS, m.TS)
	c.Messages = slices.DeleteFunc(c.Messages, same)
	if m.reply() {
		c.byThread[m.ThreadTS] = slices.DeleteFunc(c.byThread[m.ThreadTS], same)
	}
}

// replies returns the messages of a thread without its parent, oldest first.
func (c *channel) replies(threadTS string) []*message { return c.byThread[threadTS] }

// json renders the channel as conversations.info does for viewer.
func (c *channel) json(viewer, team string) object {
	out := object{
		"id": c.ID, "created": c.Created, "is_archived": c.Archived, "is_im": c.IM, "is_mpim": c.MPIM,
		"is_channel": !c.IM && !c.MPIM && !c.Private, "is_group": c.Private && !c.MPIM && !c.IM,
		"is_private": c.Private || c.IM || c.MPIM, "is_org_shared": false, "is_shared": c.Shared,
		"is_ext_shared": c.Shared, "context_team_id": team, "updated": c.Created * 1000,
	}
	if c.IM {
		out["user"], out["is_open"] = c.other(viewer), true
		return out
	}
	out["name"], out["name_normalized"], out["creator"] = c.Name, c.Name, c.Creator
	out["is_general"], out["is_member"] = c.General, c.has(viewer)
	out["topic"] = object{"value": c.Topic, "creator": c.Creator, "last_set": c.Created}
	out["purpose"] = object{"value": c.Purpose, "creator": c.Creator, "last_set": c.Created}
	out["is_pending_ext_shared"], out["pending_shared"] = false, []string{}
	out["shared_team_ids"], out["previous_names"], out["unlinked"] = []string{team}, []string{}, 0
	return out
}
