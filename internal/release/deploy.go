package main

import (
	"bytes"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
)

// deployFolder is the folder of the deployment files in the repository.
const deployFolder = "cmd/countersign/deploy"

// chartFolder is the folder of the Helm chart in every archive and package.
const chartFolder = "deploy/helm/countersign/"

// deployment lists the files with which operators run the bot. Every archive and package has them in the folder deploy.
// The scripts that the packages run are left out.
func (r *release) deployment() error {
	chart, err := r.stampChart()
	if err != nil {
		return err
	}
	root := filepath.Join(r.dir, deployFolder)
	return filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || filepath.Ext(path) == ".sh" {
			return err
		}
		rel, err := filepath.Rel(root, path)
		if err != nil {
			return err
		}
		e := entry{"deploy/" + filepath.ToSlash(rel), path, 0o644}
		if e.path == chartFolder+"Chart.yaml" {
			e.from = chart
		}
		r.deployed = append(r.deployed, e)
		return nil
	})
}

// unstamped matches the two versions in the repository's Chart.yaml.
var unstamped = regexp.MustCompile(`(?m)^(version|appVersion): 0\.0\.0$`)

// stampChart writes a Chart.yaml with the version of the release, and returns its path. stampChart sets version and
// appVersion. appVersion is the default tag of the chart's container image.
func (r *release) stampChart() (string, error) {
	text, err := os.ReadFile(filepath.Join(r.dir, deployFolder, "helm/countersign/Chart.yaml"))
	if err != nil {
		return "", err
	}
	if n := len(unstamped.FindAll(text, -1)); n != 2 {
		return "", fmt.Errorf("Chart.yaml has %d of the lines version: 0.0.0 and appVersion: 0.0.0, which the release replaces", n)
	}
	path := filepath.Join(r.work, "Chart.yaml")
	return path, os.WriteFile(path, unstamped.ReplaceAll(text, []byte("${1}: "+strings.TrimPrefix(r.version, "v"))), 0o600)
}

// chart writes the Helm chart as a file that helm install reads.
func (r *release) chart() error {
	var files []entry
	for _, e := range r.deployed {
		if path, ok := strings.CutPrefix(e.path, chartFolder); ok {
			files = append(files, entry{path, e.from, e.mode})
		}
	}
	var buf bytes.Buffer
	if err := tarred(&buf, "countersign", files, r.date); err != nil {
		return err
	}
	return os.WriteFile(r.name("chart.tgz"), buf.Bytes(), 0o644)
}
