package markdown

import (
	"strings"
	"unicode/utf8"

	"github.com/slack-go/slack"
)

// This file turns a model's Markdown tables into Slack's tables. A message can have only one table. Further tables, and
// tables above Slack's limits, are drawn as text in columns.

// These values are Slack's limits of a table: 100 rows of 20 cells. The limit on the size of the whole table is the
// bot's own.
const (
	maxTableRows    = 100
	maxTableColumns = 20
)

// tablePiece parses the lines of a table: the header, the delimiter line, and the rows.
func tablePiece(lines []string) []Piece {
	var rows [][]string
	columns := 0
	for i, l := range lines {
		if i == 1 {
			continue
		}
		row := cellsOf(l)
		columns = max(columns, len(row))
		rows = append(rows, row)
	}
	for i := range rows {
		for len(rows[i]) < columns {
			rows[i] = append(rows[i], "")
		}
	}
	text := inColumns(rows)
	if len(rows) > maxTableRows || columns > maxTableColumns || utf8.RuneCountInString(text) > MaxBlockText {
		return exactPieces(text)
	}
	table := slack.NewTableBlock("")
	for i, row := range rows {
		cells := make([]slack.TableCell, columns)
		for j, cell := range row {
			parts := parseInline(cell)
			if i == 0 {
				parts = bolden(parts)
			}
			if len(parts) == 0 {
				parts = literal(" ", nil)
			}
			cells[j] = slack.NewTableRichTextCell(slack.NewRichTextSection(parts...))
		}
		table.AddRow(cells...)
	}
	out := exactPieces(text)[0]
	out.Table = table.WithColumnSettings(alignments(lines[1], columns)...)
	return []Piece{out}
}

// cellsOf splits a line of a table. An escaped bar belongs to its cell.
func cellsOf(line string) []string {
	line = strings.TrimSuffix(strings.TrimPrefix(strings.TrimSpace(strings.ReplaceAll(line, `\|`, "\x00")), "|"), "|")
	cells := strings.Split(line, "|")
	for i, c := range cells {
		cells[i] = strings.TrimSpace(strings.ReplaceAll(c, "\x00", "|"))
	}
	return cells
}

// alignments returns the column alignments from the delimiter line.
func alignments(line string, columns int) []slack.ColumnSetting {
	out := make([]slack.ColumnSetting, columns)
	cells := cellsOf(line)
	for i := range out {
		out[i] = slack.ColumnSetting{Align: slack.ColumnAlignmentLeft, IsWrapped: true}
		if i >= len(cells) || !strings.HasSuffix(cells[i], ":") {
			continue
		}
		out[i].Align = slack.ColumnAlignmentRight
		if strings.HasPrefix(cells[i], ":") {
			out[i].Align = slack.ColumnAlignmentCenter
		}
	}
	return out
}

// inColumns formats rows of cells as aligned text.
func inColumns(rows [][]string) string {
	var widths []int
	for _, row := range rows {
		for j, cell := range row {
			if j == len(widths) {
				widths = append(widths, 0)
			}
			widths[j] = max(widths[j], utf8.RuneCountInString(cell))
		}
	}
	var b strings.Builder
	for i, row := range rows {
		if i > 0 {
			b.WriteByte('\n')
		}
		for j, cell := range row {
			if j > 0 {
				b.WriteString(" | ")
			}
			b.WriteString(cell)
			if pad := widths[j] - utf8.RuneCountInString(cell); j < len(row)-1 {
				b.WriteString(strings.Repeat(" ", pad))
			}
		}
	}
	return b.String()
}
