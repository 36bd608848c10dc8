package blockkit

var (
	modalFields = []string{"type", "title", "blocks", "close", "submit", "private_metadata", "callback_id", "clear_on_close", "notify_on_close", "external_id", "submit_disabled"}
	homeFields  = []string{"type", "blocks", "private_metadata", "callback_id", "external_id", "title", "close", "submit", "clear_on_close", "notify_on_close"}
)

// CheckView returns the problems of a modal or an App Home.
func CheckView(view object, known Known) []string {
	c := checker{surface: onModal, known: known}
	fields := modalFields
	isModal := view["type"] == "modal"
	if !isModal {
		c.surface, fields = onHome, homeFields
	}
	c.only("/view", view, fields)
	if isModal {
		c.plain("/view/title", view["title"], maxModalTitle, true)
		c.plain("/view/submit", view["submit"], maxModalTitle, false)
		c.plain("/view/close", view["close"], maxModalTitle, false)
	}
	c.str("/view/private_metadata", view["private_metadata"], maxPrivateMetadata, false)
	c.name("/view/callback_id", view["callback_id"])
	c.name("/view/external_id", view["external_id"])
	blocks, ok := view["blocks"].([]any)
	if !ok {
		c.report("/view/blocks", "missing required field: blocks")
	}
	c.blocks("/view/blocks", blocks, maxViewBlocks)
	if _, canSubmit := view["submit"].(object); isModal && !canSubmit && hasInput(blocks) {
		c.report("/view/submit", "missing required field: submit")
	}
	return c.problems
}

func hasInput(blocks []any) bool {
	for _, b := range objects(blocks) {
		if b["type"] == "input" {
			return true
		}
	}
	return false
}
