// Command plots draws the plots of docs/figures.md from what the benchmarks wrote into the folder that COUNTERSIGN_FIGURES named:
//
//	go run ./internal/plots docs/plots
package main

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/font"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/plotutil"
	"gonum.org/v1/plot/vg"
)

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "plots: name the folder with what the benchmarks wrote, such as docs/plots")
		os.Exit(2)
	}
	if err := draw(os.Args[1]); err != nil {
		fmt.Fprintln(os.Stderr, "plots:", err)
		os.Exit(1)
	}
}

// row is one line of a benchmark's output.
type row map[string]float64

// chart is one picture: lines over a common x.
type chart struct {
	file, from  string
	title, x, y string
	over        string // the field on the x axis
	lines       []line
	logX        bool
	bound       float64 // the figure to reach; 0: none
	boundWords  string
	smallestY   float64 // the y axis reaches at least this far
}

type line struct{ field, words string }

var charts = []chart{
	{
		file: "growth-start.svg", from: "growth.json", title: "serve: from its start until it is ready", x: "requests that wait", y: "ms", over: "requests", logX: true,
		lines: []line{{"start_ms", "start"}}, bound: 2000, boundWords: "to reach",
	},
	{
		file: "growth-heap.svg", from: "growth.json", title: "serve: its heap when it is ready", x: "requests that wait", y: "MiB", over: "requests", logX: true,
		lines: []line{{"heap_mib", "heap"}}, smallestY: 64,
	},
	{
		file: "growth-decision.svg", from: "growth.json", title: "One decision, durable", x: "requests that wait", y: "ms", over: "requests", logX: true,
		lines: []line{{"decide_p50", "p50"}, {"decide_p99", "p99"}},
	},
}

func draw(dir string) error {
	for _, c := range charts {
		rows, err := read(filepath.Join(dir, c.from))
		if err != nil {
			return err
		}
		if err := c.draw(rows, filepath.Join(dir, c.file)); err != nil {
			return fmt.Errorf("%s: %w", c.file, err)
		}
	}
	return nil
}

// read reads lines of JSON objects.
func read(path string) (rows []row, err error) {
	f, err := os.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("%s is not there; docs/figures.md says which benchmark writes it", path)
	}
	if err != nil {
		return nil, err
	}
	defer f.Close()
	for lines := bufio.NewScanner(f); lines.Scan(); {
		var r row
		if err := json.Unmarshal(lines.Bytes(), &r); err != nil {
			return nil, fmt.Errorf("%s: %w", path, err)
		}
		rows = append(rows, r)
	}
	if len(rows) == 0 {
		return nil, fmt.Errorf("%s is empty", path)
	}
	return rows, nil
}

// size of a picture.
const width, height = 16 * vg.Centimeter, 8 * vg.Centimeter

func (c chart) draw(rows []row, file string) error {
	p := plot.New()
	p.Title.Text, p.X.Label.Text, p.Y.Label.Text = c.title, c.x, c.y
	p.Title.TextStyle.Font.Size = font.Points(12)
	p.Legend.Top, p.Legend.Left = true, true
	p.Add(plotter.NewGrid())
	if c.logX {
		p.X.Scale, p.X.Tick.Marker = plot.LogScale{}, plot.LogTicks{Prec: -1}
	}
	for i, l := range c.lines {
		points := make(plotter.XYs, len(rows))
		for n, r := range rows {
			points[n].X, points[n].Y = r[c.over], r[l.field]
		}
		drawn, dots, err := plotter.NewLinePoints(points)
		if err != nil {
			return err
		}
		drawn.Color, dots.Color, dots.Shape = plotutil.Color(i), plotutil.Color(i), plotutil.Shape(i)
		drawn.Width = vg.Points(1.5)
		p.Add(drawn, dots)
		p.Legend.Add(l.words, drawn, dots)
	}
	if c.bound > 0 {
		bound := plotter.NewFunction(func(float64) float64 { return c.bound })
		bound.Dashes, bound.Color = plotutil.Dashes(1), plotutil.Color(2)
		p.Add(bound)
		p.Legend.Add(c.boundWords, bound)
	}
	p.Y.Min = 0
	p.Y.Max = max(p.Y.Max*1.1, c.bound*1.35, c.smallestY) // room for the legend
	return p.Save(width, height, file)
}
