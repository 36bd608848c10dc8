package alerts

import (
	"bytes"
	"image"
	"image/color"
	"image/color/palette"
	imagedraw "image/draw"
	"image/png"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/grafana/grafana-foundation-sdk/go/common"
	"github.com/grafana/grafana-foundation-sdk/go/dashboard"
	"gonum.org/v1/plot"
	"gonum.org/v1/plot/font"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/text"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
	"gonum.org/v1/plot/vg/vgimg"
)

// The picture has one pixel for each point. Its sizes are those of Grafana's grid.
const (
	pictureWidth = 1560
	gridHeight   = 34 // height of one unit of Grafana's grid
	headHeight   = 44
	gap          = 4
)

// line is one series in a panel, with a legend. If two points are more than one step apart, the line has a gap between
// them.
type line struct {
	legend string
	points plotter.XYs
}

// drawn is a panel with its data.
type drawn struct {
	dashboard.Panel
	lines []line
}

var (
	background = color.RGBA{0xf4, 0xf5, 0xf5, 0xff}
	border     = color.RGBA{0xd8, 0xd9, 0xda, 0xff}
	faint      = color.RGBA{0x6e, 0x70, 0x74, 0xff}
	ink        = color.RGBA{0x24, 0x29, 0x2e, 0xff}
	colours    = map[string]color.RGBA{"green": {0x37, 0x87, 0x2d, 0xff}, "orange": {0xe0, 0x75, 0x00, 0xff}, "red": {0xc4, 0x16, 0x2a, 0xff}}
	lineColour = []color.RGBA{{0x37, 0x87, 0x2d, 0xff}, {0xe0, 0xa4, 0x00, 0xff}, {0x1f, 0x60, 0xc4, 0xff}, {0xe0, 0x5a, 0x10, 0xff}, {0xc4, 0x16, 0x2a, 0xff}, {0x8f, 0x3b, 0xb8, 0xff}, {0x00, 0x8c, 0x95, 0xff}, {0x7c, 0x5a, 0x3a, 0xff}}
)

// picture draws a dashboard, and returns the PNG.
func picture(title string, panels []drawn, begins, ends time.Time, step time.Duration) ([]byte, error) {
	rows := uint32(0)
	for _, p := range panels {
		rows = max(rows, p.GridPos.Y+p.GridPos.H)
	}
	height := headHeight + vg.Length(rows)*gridHeight + gap
	img := vgimg.NewWith(vgimg.UseWH(pictureWidth, height), vgimg.UseDPI(72), vgimg.UseBackgroundColor(background))
	c := draw.New(img)
	write(c, vg.Point{X: 12, Y: height - 28}, 15, ink, true, title)
	for _, p := range panels {
		unit := vg.Length(pictureWidth) / 24
		g := p.GridPos
		top := height - headHeight - vg.Length(g.Y)*gridHeight
		box := vg.Rectangle{
			Min: vg.Point{X: vg.Length(g.X)*unit + gap, Y: top - vg.Length(g.H)*gridHeight + gap},
			Max: vg.Point{X: vg.Length(g.X+g.W)*unit - gap, Y: top - gap},
		}
		if p.Type == "row" {
			write(c, vg.Point{X: box.Min.X + 4, Y: box.Min.Y + 7}, 14, ink, true, *p.Title)
			continue
		}
		p.draw(draw.Canvas{Canvas: c.Canvas, Rectangle: box}, begins, ends, step)
	}
	var out bytes.Buffer
	small := image.NewPaletted(img.Image().Bounds(), palette.WebSafe)
	small.Palette = append(color.Palette{background, color.White, border, faint, ink}, shades()...)
	imagedraw.Draw(small, small.Rect, img.Image(), image.Point{}, imagedraw.Src)
	err := (&png.Encoder{CompressionLevel: png.BestCompression}).Encode(&out, small)
	return out.Bytes(), err
}

// shades returns the colours of the picture: mixtures of white with each colour of lines, values and texts. The picture
// is small, because it has at most 256 colours.
func shades() (out color.Palette) {
	mix := func(c color.RGBA, part float64) color.RGBA {
		of := func(v uint8) uint8 { return uint8(255 - part*float64(255-v)) }
		return color.RGBA{of(c.R), of(c.G), of(c.B), 0xff}
	}
	all := append([]color.RGBA{colours["orange"], colours["red"], ink}, lineColour...)
	for _, c := range all {
		for i := 1; i <= 22; i++ {
			out = append(out, mix(c, float64(i)/22))
		}
	}
	return out
}

func style(size float64, c color.Color, bold bool) text.Style {
	f := font.Font{Typeface: "Liberation", Variant: "Sans"}
	if bold {
		f.Weight = 3 // bold, as in golang.org/x/image/font
	}
	return text.Style{Color: c, Font: font.From(f, font.Length(size)), Handler: plot.DefaultTextHandler}
}

func write(c draw.Canvas, at vg.Point, size float64, colour color.Color, bold bool, s string) {
	c.FillText(style(size, colour, bold), at, s)
}

func (p drawn) draw(c draw.Canvas, begins, ends time.Time, step time.Duration) {
	c.SetColor(color.White)
	c.Fill(c.Path())
	c.StrokeLines(draw.LineStyle{Color: border, Width: 1}, []vg.Point{c.Min, {X: c.Max.X, Y: c.Min.Y}, c.Max, {X: c.Min.X, Y: c.Max.Y}, c.Min})
	write(c, vg.Point{X: c.Min.X + 8, Y: c.Max.Y - 17}, 12, ink, true, *p.Title)
	if p.Type == "stat" {
		p.drawStat(c)
		return
	}
	top := vg.Length(24)
	if p.Description != nil {
		write(c, vg.Point{X: c.Min.X + 8, Y: c.Max.Y - 31}, 10, faint, false, *p.Description)
		top = 38
	}
	bottom := p.drawLegend(c)
	p.drawLines(draw.Crop(c, 8, -12, bottom+4, -top), begins, ends, step)
}

// drawStat draws the last value of a panel's query, as Grafana does.
func (p drawn) drawStat(c draw.Canvas) {
	shown, colour := "No data", color.Color(faint)
	if fields := p.FieldConfig.Defaults; len(p.lines) > 0 {
		v := p.lines[0].points[len(p.lines[0].points)-1].Y
		shown = inUnit(*fields.Unit, v)
		for _, s := range fields.Thresholds.Steps {
			if s.Value == nil || v >= *s.Value {
				colour = colours[s.Color]
			}
		}
	}
	s := style(30, colour, true)
	s.XAlign = draw.XCenter
	c.FillText(s, vg.Point{X: (c.Min.X + c.Max.X) / 2, Y: c.Min.Y + 34}, shown)
	if p.Description != nil {
		for i, part := range wrapped(*p.Description, c.Max.X-c.Min.X-14, style(9, faint, false)) {
			write(c, vg.Point{X: c.Min.X + 8, Y: c.Min.Y + 17 - vg.Length(10*i)}, 9, faint, false, part)
		}
	}
}

// wrapped breaks a text into lines.
func wrapped(s string, width vg.Length, st text.Style) (lines []string) {
	now := ""
	for word := range strings.FieldsSeq(s) {
		if longer := strings.TrimSpace(now + " " + word); st.Width(longer) <= width {
			now = longer
			continue
		}
		lines, now = append(lines, now), word
	}
	return append(lines, now)
}

// drawLegend draws the legend at the bottom, and returns its height.
func (p drawn) drawLegend(c draw.Canvas) vg.Length {
	s := style(10, ink, false)
	type entry struct {
		line, row int
		x         vg.Length
	}
	var entries []entry
	x, row := vg.Length(8), 0
	for i, l := range p.lines {
		width := s.Width(l.legend) + 30
		if x+width > c.Max.X-c.Min.X && x > 8 {
			x, row = 8, row+1
		}
		entries = append(entries, entry{i, row, x})
		x += width
	}
	for _, e := range entries {
		y := c.Min.Y + 8 + vg.Length(14*(row-e.row))
		at := c.Min.X + e.x
		c.StrokeLine2(draw.LineStyle{Color: p.lineColour(e.line), Width: 3}, at, y+3, at+12, y+3)
		c.FillText(s, vg.Point{X: at + 16, Y: y}, p.lines[e.line].legend)
	}
	return vg.Length(14*(row+1)) + 6
}

// lineColour returns the colour of a line: the colour that the panel gives to its legend, or the next one of the palette.
func (p drawn) lineColour(i int) color.RGBA {
	for _, o := range p.FieldConfig.Overrides {
		if o.Matcher.Options == p.lines[i].legend {
			return colours[o.Properties[0].Value.(map[string]any)["fixedColor"].(string)]
		}
	}
	return lineColour[i%len(lineColour)]
}

// drawLines draws the axes and the lines of a panel.
func (p drawn) drawLines(c draw.Canvas, begins, ends time.Time, step time.Duration) {
	fields := p.FieldConfig.Defaults
	custom, _ := fields.Custom.(*common.GraphFieldConfig)
	pl := plot.New()
	pl.BackgroundColor = color.White
	pl.X.Min, pl.X.Max = float64(begins.Unix()), float64(ends.Unix())
	pl.X.Tick.Marker = days{begins, ends}
	most := 0.0
	if custom != nil && custom.AxisSoftMax != nil {
		most = *custom.AxisSoftMax
	}
	for _, l := range p.lines {
		for _, xy := range l.points {
			most = max(most, xy.Y)
		}
	}
	ticks := ticksOf(*fields.Unit, most)
	pl.Y.Min, pl.Y.Max = 0, ticks[len(ticks)-1].Value
	pl.Y.Tick.Marker = plot.ConstantTicks(ticks)
	for _, axis := range []*plot.Axis{&pl.X, &pl.Y} {
		axis.Color, axis.Tick.Color = border, border
		axis.Tick.Label = style(10, faint, false)
		axis.Padding = 0
	}
	pl.X.Tick.Label.XAlign, pl.X.Tick.Label.YAlign = draw.XCenter, draw.YTop
	pl.Y.Tick.Label.XAlign, pl.Y.Tick.Label.YAlign = draw.XRight, draw.YCenter
	grid := plotter.NewGrid()
	grid.Horizontal.Color, grid.Vertical.Color = color.RGBA{0xec, 0xec, 0xed, 0xff}, color.RGBA{0xec, 0xec, 0xed, 0xff}
	pl.Add(grid)
	for i, l := range p.lines {
		for _, part := range parts(l.points, step) {
			colour := p.lineColour(i)
			if len(part) == 1 {
				pl.Add(&plotter.Scatter{XYs: part, GlyphStyle: draw.GlyphStyle{Color: colour, Radius: 1.6, Shape: draw.CircleGlyph{}}})
				continue
			}
			one := &plotter.Line{XYs: part, LineStyle: draw.LineStyle{Color: colour, Width: 1.3}}
			if custom != nil && custom.LineInterpolation != nil && *custom.LineInterpolation == common.LineInterpolationStepAfter {
				one.StepStyle = plotter.PostStep
			}
			pl.Add(one)
		}
	}
	if custom != nil && custom.ThresholdsStyle != nil {
		for _, s := range fields.Thresholds.Steps {
			if s.Value != nil && *s.Value <= pl.Y.Max {
				pl.Add(&plotter.Line{
					XYs:       plotter.XYs{{X: pl.X.Min, Y: *s.Value}, {X: pl.X.Max, Y: *s.Value}},
					LineStyle: draw.LineStyle{Color: colours[s.Color], Width: 1, Dashes: []vg.Length{6, 4}},
				})
			}
		}
	}
	pl.Draw(c)
	if len(p.lines) == 0 {
		s := style(16, faint, false)
		s.XAlign = draw.XCenter
		c.FillText(s, vg.Point{X: (c.Min.X + c.Max.X) / 2, Y: (c.Min.Y + c.Max.Y) / 2}, "No data")
	}
}

// parts divides a series of points at each place where at least one point is missing.
func parts(all plotter.XYs, step time.Duration) (out []plotter.XYs) {
	for i, xy := range all {
		if i == 0 || xy.X-all[i-1].X > 1.5*step.Seconds() {
			out = append(out, nil)
		}
		out[len(out)-1] = append(out[len(out)-1], xy)
	}
	return out
}

// days returns the marks of the time axis: one mark for each day, or one mark every three hours if the picture shows
// less than 50 hours.
type days struct{ begins, ends time.Time }

func (d days) Ticks(float64, float64) (out []plot.Tick) {
	every, form := 24*time.Hour, "Mon"
	if d.ends.Sub(d.begins) < 50*time.Hour {
		every, form = 3*time.Hour, "15:04"
	}
	for at := d.begins.Truncate(every).Add(every); at.Before(d.ends); at = at.Add(every) {
		out = append(out, plot.Tick{Value: float64(at.Unix()), Label: at.UTC().Format(form)})
	}
	return out
}

// ticksOf returns the marks of a y axis that begins at 0.
func ticksOf(unit string, most float64) (out []plot.Tick) {
	var steps []float64
	if unit == "s" {
		steps = []float64{60, 120, 300, 600, 900, 1800, 3600, 2 * 3600, 4 * 3600, 6 * 3600, 12 * 3600, 24 * 3600, 48 * 3600}
	}
	base := 10.0
	if unit == "bytes" {
		base = 2
	}
	if unit != "s" || most < 150 {
		steps = nil
		for size := math.Pow(base, -12); size < 1e13; size *= base {
			steps = append(steps, size)
			if base == 10 {
				steps = append(steps, 2*size, 5*size)
			}
		}
	}
	step := steps[len(steps)-1]
	for _, s := range steps {
		if most/s <= 4.5 {
			step = s
			break
		}
	}
	if most == 0 || unit == "none" && most <= 4.5 || strings.HasPrefix(unit, "bool:") {
		step = 1
	}
	for v := 0.0; ; v += step {
		out = append(out, plot.Tick{Value: v, Label: inUnit(unit, v)})
		if v >= most && v > 0 {
			return out
		}
	}
}

// inUnit writes a value as Grafana does.
func inUnit(unit string, v float64) string {
	short := func(v float64) string { return strconv.FormatFloat(v, 'g', 3, 64) }
	scaled := func(v, base float64, units ...string) string {
		for _, u := range units[:len(units)-1] {
			if v < base {
				return short(v) + u
			}
			v /= base
		}
		return short(v) + units[len(units)-1]
	}
	switch unit {
	case "s":
		switch {
		case v == 0:
			return "0 s"
		case v < 1:
			return short(v*1000) + " ms"
		case v < 60:
			return short(v) + " s"
		case v < 3600:
			return short(v/60) + " min"
		case v < 48*3600:
			return short(v/3600) + " h"
		}
		return short(v/86400) + " d"
	case "bytes":
		return scaled(v, 1024, " B", " KiB", " MiB", " GiB", " TiB")
	case "percentunit":
		return short(100*v) + " %"
	case "wps":
		return scaled(v, 1000, " wr/s", " K wr/s")
	case "short":
		return scaled(v, 1000, "", " K", " Mil")
	case "none":
		return strconv.FormatFloat(v, 'f', 0, 64)
	}
	if words, ok := strings.CutPrefix(unit, "bool:"); ok {
		yes, no, _ := strings.Cut(words, "/")
		if v == 0 {
			return no
		}
		return yes
	}
	return short(v) + " " + strings.TrimPrefix(unit, "suffix:")
}
