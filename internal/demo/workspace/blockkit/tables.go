package blockkit

import "fmt"

// tableBlock checks a table. A message may have only one table.
func (c *checker) tableBlock(at string, b object) {
	if c.tables++; c.tables > 1 {
		c.report(at, "only one table allowed")
	}
	for i, row := range c.list(at+"/rows", b["rows"], 1, maxTableRows) {
		pointer := fmt.Sprintf("%s/rows/%d", at, i)
		for j, cell := range c.list(pointer, row, 1, maxTableColumns) {
			c.cell(fmt.Sprintf("%s/%d", pointer, j), cell)
		}
	}
	if textLength(b["rows"]) > maxTableText {
		c.report(at+"/rows", "must be less than %d characters", maxTableText+1)
	}
	if b["column_settings"] == nil {
		return
	}
	for i, v := range c.list(at+"/column_settings", b["column_settings"], 0, maxTableColumns) {
		if v == nil { // the column has the defaults
			continue
		}
		pointer := fmt.Sprintf("%s/column_settings/%d", at, i)
		column := c.object(pointer, v)
		c.only(pointer, column, []string{"align", "is_wrapped"})
		c.oneOf(pointer+"/align", column["align"], "left", "center", "right")
	}
}

// cell checks a cell of a table.
func (c *checker) cell(at string, v any) {
	cell := c.object(at, v)
	c.oneOf(at+"/type", cell["type"], "raw_text", "raw_number", "rich_text")
	switch kind, _ := cell["type"].(string); kind {
	case "":
		c.report(at+"/type", "missing required field: type")
	case "raw_text":
		c.only(at, cell, []string{"type", "text"})
		c.str(at+"/text", cell["text"], maxSectionText, true)
	case "raw_number":
		c.only(at, cell, []string{"type", "value", "text"})
		c.number(at+"/value", cell["value"])
		c.str(at+"/text", cell["text"], maxSectionText, false)
	case "rich_text":
		c.richText(at, cell)
	}
}
