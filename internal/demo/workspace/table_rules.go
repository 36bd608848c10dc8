package workspace

import (
	"fmt"
	"unicode/utf8"
)

func (c *checker) tableBlock(at string, b object) {
	if c.tables++; c.tables > 1 {
		c.report(at, "only one table allowed")
	}
	for i, row := range c.list(at+"/rows", b["rows"], 1, maxTableRows) {
		pointer := fmt.Sprintf("%s/rows/%d", at, i)
		for j, cell := range c.list(pointer, row, 1, maxTableColumns) {
			c.cell(fmt.Sprintf("%s/%d", pointer, j), cell, "raw_text", "raw_number", "rich_text")
		}
	}
	if textLength(b["rows"]) > maxTableText {
		c.report(at+"/rows", "must be less than %d characters", maxTableText+1)
	}
	if b["column_settings"] == nil {
		return
	}
	for i, v := range c.list(at+"/column_settings", b["column_settings"], 0, maxTableColumns) {
		if v == nil { // the column as it is by default
			continue
		}
		pointer := fmt.Sprintf("%s/column_settings/%d", at, i)
		column := c.object(pointer, v)
		c.only(pointer, column, []string{"align", "is_wrapped"})
		c.oneOf(pointer+"/align", column["align"], "left", "center", "right")
	}
}

func (c *checker) dataTable(at string, b object) {
	c.str(at+"/caption", b["caption"], maxSectionText, true)
	columns := -1
	for i, row := range c.list(at+"/rows", b["rows"], 2, maxDataTableRows) {
		pointer := fmt.Sprintf("%s/rows/%d", at, i)
		cells := c.list(pointer, row, 1, maxTableColumns)
		if columns < 0 {
			columns = len(cells)
		}
		if len(cells) != columns {
			c.report(pointer, "all rows must have the same number of cells")
		}
		kinds := []string{"raw_text", "raw_number", "rich_text", "action_cell"}
		if i == 0 {
			kinds = kinds[:2]
		}
		for j, cell := range cells {
			c.cell(fmt.Sprintf("%s/%d", pointer, j), cell, kinds...)
		}
	}
	if textLength(b["rows"]) > maxDataTableText {
		c.report(at+"/rows", "must be less than %d characters", maxDataTableText+1)
	}
	if n, ok := wholeNumber(b["page_size"]); b["page_size"] != nil && (!ok || n < 1 || n > maxPageSize) {
		c.report(at+"/page_size", "must be from 1 to %d", maxPageSize)
	}
	if n, ok := wholeNumber(b["row_header_column_index"]); b["row_header_column_index"] != nil && (!ok || n < 0 || n >= columns) {
		c.report(at+"/row_header_column_index", "must be the index of a column")
	}
}

// cell checks a cell of a table.
func (c *checker) cell(at string, v any, kinds ...string) {
	cell := c.object(at, v)
	kind, _ := cell["type"].(string)
	c.oneOf(at+"/type", cell["type"], kinds...)
	switch kind {
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
	case "action_cell":
		c.only(at, cell, []string{"type", "element", "fallback"})
		if e, ok := cell["element"].(object); ok && e["type"] != "button" {
			c.report(at+"/element/type", "unsupported type: %v", e["type"])
		} else {
			c.element(at+"/element", cell["element"], inActions)
		}
		if cell["fallback"] != nil {
			c.cell(at+"/fallback", cell["fallback"], "raw_text", "raw_number")
		}
	}
}

func (c *checker) dataVisualization(at string, b object) {
	c.str(at+"/title", b["title"], maxChartTitle, true)
	chart := c.object(at+"/chart", b["chart"])
	switch chart["type"] {
	case "pie":
		c.only(at+"/chart", chart, []string{"type", "segments"})
		for i, v := range c.list(at+"/chart/segments", chart["segments"], 1, maxChartSeries) {
			pointer := fmt.Sprintf("%s/chart/segments/%d", at, i)
			segment := c.object(pointer, v)
			c.str(pointer+"/label", segment["label"], maxChartLabel, true)
			if n := c.number(pointer+"/value", segment["value"]); n <= 0 {
				c.report(pointer+"/value", "must be greater than 0")
			}
		}
	case "bar", "area", "line":
		c.only(at+"/chart", chart, []string{"type", "series", "axis_config"})
		c.series(at+"/chart", chart)
	default:
		c.report(at+"/chart/type", "must be one of pie, bar, area, line")
	}
}

// series checks that each series has one point for every category, in the categories' names.
func (c *checker) series(at string, chart object) {
	axis := c.object(at+"/axis_config", chart["axis_config"])
	c.only(at+"/axis_config", axis, []string{"categories", "x_label", "y_label"})
	c.str(at+"/axis_config/x_label", axis["x_label"], maxChartTitle, false)
	c.str(at+"/axis_config/y_label", axis["y_label"], maxChartTitle, false)
	categories := map[string]bool{}
	for i, v := range c.list(at+"/axis_config/categories", axis["categories"], 1, maxChartPoints) {
		pointer := fmt.Sprintf("%s/axis_config/categories/%d", at, i)
		name := c.str(pointer, v, maxChartLabel, true)
		if categories[name] {
			c.report(pointer, "categories must be unique")
		}
		categories[name] = true
	}
	names := map[string]bool{}
	for i, v := range c.list(at+"/series", chart["series"], 1, maxChartSeries) {
		pointer := fmt.Sprintf("%s/series/%d", at, i)
		series, seen := c.object(pointer, v), map[string]bool{}
		name := c.str(pointer+"/name", series["name"], maxChartLabel, true)
		if names[name] {
			c.report(pointer+"/name", "series names must be unique")
		}
		names[name] = true
		for j, v := range c.list(pointer+"/data", series["data"], 1, maxChartPoints) {
			place := fmt.Sprintf("%s/data/%d", pointer, j)
			point := c.object(place, v)
			label := c.str(place+"/label", point["label"], maxChartLabel, true)
			if !categories[label] || seen[label] {
				c.report(place+"/label", "must be each category once")
			}
			seen[label] = true
			c.number(place+"/value", point["value"])
		}
		if len(seen) != len(categories) {
			c.report(pointer+"/data", "must have one point for every category")
		}
	}
}

// number checks a required number.
func (c *checker) number(at string, v any) float64 {
	n, ok := v.(interface{ Float64() (float64, error) })
	if !ok {
		c.report(at, "must be a number")
		return 0
	}
	f, err := n.Float64()
	if err != nil {
		c.report(at, "must be a number")
	}
	return f
}

func (c *checker) markdownBlock(at string, b object) {
	c.str(at+"/text", b["text"], maxMarkdownText, true)
	text, _ := b["text"].(string)
	before := c.markdown
	c.markdown += utf8.RuneCountInString(text)
	if before <= maxMarkdownText && c.markdown > maxMarkdownText && before > 0 {
		c.report(at+"/text", "markdown blocks of one message must be less than %d characters together", maxMarkdownText+1)
	}
}
