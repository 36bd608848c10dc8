package workspace

import "fmt"

// selectFields are the fields of the select menus, beyond those that all have: of one
// choice and of several.
var selectFields = map[string]struct{ one, several []string }{
	"static":        {[]string{"options", "option_groups", "initial_option"}, []string{"options", "option_groups", "initial_options"}},
	"external":      {[]string{"min_query_length", "initial_option"}, []string{"min_query_length", "initial_options"}},
	"users":         {[]string{"initial_user"}, []string{"initial_users"}},
	"channels":      {[]string{"initial_channel", "response_url_enabled"}, []string{"initial_channels"}},
	"conversations": {[]string{"initial_conversation", "default_to_current_conversation", "response_url_enabled", "filter"}, []string{"initial_conversations", "default_to_current_conversation", "filter"}},
}

func init() {
	shared := []string{hasPlaceholder, hasConfirm, hasFocus}
	for source, fields := range selectFields {
		check := (*checker).selectMenu
		if source == "static" {
			check = (*checker).staticSelect
		}
		where := inSection | inActions | inInput
		elementRules[source+"_select"] = elementRule{where, append(fields.one, shared...), check}
		elementRules["multi_"+source+"_select"] = elementRule{where, append(append(fields.several, "max_selected_items"), shared...), check}
	}
}

// staticSelect checks a select whose options the app wrote down.
func (c *checker) staticSelect(at string, e object) {
	c.selectMenu(at, e)
	groups, grouped := e["option_groups"]
	if !grouped {
		c.options(at+"/options", e["options"], maxOptions, inSelect)
		c.initial(at, e, optionsOf(e))
		return
	}
	if e["options"] != nil {
		c.report(at, "options and option_groups cannot be used together")
	}
	for i, g := range c.list(at+"/option_groups", groups, 1, maxOptions) {
		pointer := fmt.Sprintf("%s/option_groups/%d", at, i)
		group, ok := g.(object)
		if !ok {
			c.report(pointer, "must be an object")
			continue
		}
		c.plain(pointer+"/label", group["label"], maxOptionText, true)
		c.options(pointer+"/options", group["options"], maxOptions, inSelect)
	}
	c.initial(at, e, optionsOf(e))
}

// selectMenu checks what all selects share: how many may be chosen, and that the people
// and channels that are chosen at first exist.
func (c *checker) selectMenu(at string, e object) {
	most, limited := wholeNumber(e["max_selected_items"])
	if e["max_selected_items"] != nil && (!limited || most < 1) {
		c.report(at+"/max_selected_items", "must be greater than or equal to 1")
		limited = false
	}
	for _, what := range []string{"user", "channel", "conversation"} {
		if first := e["initial_"+what]; first != nil {
			c.exists(at+"/initial_"+what, what, first)
		}
		if e["initial_"+what+"s"] == nil {
			continue
		}
		list := c.list(at+"/initial_"+what+"s", e["initial_"+what+"s"], 0, -1)
		if limited && len(list) > most {
			c.report(at+"/initial_"+what+"s", "no more than %d items allowed", most)
		}
		for i, first := range list {
			c.exists(fmt.Sprintf("%s/initial_%ss/%d", at, what, i), what, first)
		}
	}
	if first, _ := e["initial_options"].([]any); limited && len(first) > most {
		c.report(at+"/initial_options", "no more than %d items allowed", most)
	}
}

// exists checks that an id is somebody's, or a conversation's.
func (c *checker) exists(at, what string, v any) {
	id, ok := v.(string)
	if !ok {
		c.report(at, "must be a string")
	} else if !c.known(what, id) {
		c.report(at, "invalid %s: %s", what, id)
	}
}

// known tells whether there is such a user, channel or conversation.
func (s *Server) known(what, id string) bool {
	if what == "user" {
		return s.users[id] != nil
	}
	ch := s.channels[id]
	return ch != nil && (what == "conversation" || ch.kind() == "channel")
}
