package auditreport

import (
	_ "embed"
	"html/template"
	"io"
)

//go:embed page.html
var pageText string

var pageTemplate = template.Must(template.New("page").Parse(pageText))

// pageCell is a cell with the CSS class of its column.
type pageCell struct{ Text, Class string }

type pageTable struct {
	Title, Note, None string
	Heads             []pageCell
	Rows              [][]pageCell
}

func (c column) class() string {
	switch {
	case c.number:
		return "number"
	case c.name == "time":
		return "time"
	}
	return ""
}

// writePage writes an HTML page. The template escapes all texts.
func writePage(out io.Writer, r Report) error {
	data := struct {
		Title  string
		About  []string
		Tables []pageTable
	}{Title: r.title(), About: r.about()}
	for _, t := range r.tables() {
		drawn := pageTable{Title: t.title, Note: t.note, None: t.none}
		for _, c := range t.columns {
			drawn.Heads = append(drawn.Heads, pageCell{c.head, c.class()})
		}
		for _, row := range t.rows {
			var cells []pageCell
			for i, c := range row {
				cells = append(cells, pageCell{c.text, t.columns[i].class()})
			}
			drawn.Rows = append(drawn.Rows, cells)
		}
		data.Tables = append(data.Tables, drawn)
	}
	return pageTemplate.Execute(out, data)
}
