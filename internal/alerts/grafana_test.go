package alerts

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"testing"

	"github.com/grafana/grafana-foundation-sdk/go/cog"
	"github.com/grafana/grafana-foundation-sdk/go/cog/plugins"
	"github.com/grafana/grafana-foundation-sdk/go/dashboard"
	"github.com/grafana/grafana-foundation-sdk/go/prometheus"
)

func init() { plugins.RegisterDefaultPlugins() }

// strict decodes JSON with a type that is generated from Grafana's schema. Unknown keys, missing keys and wrong types
// are errors. The strict decoder loses the parts of a panel that depend on the panel's type, so its result is not used.
func strict(raw []byte, into interface{ UnmarshalJSONStrict([]byte) error }) error {
	err := into.UnmarshalJSONStrict(raw)
	if list, ok := err.(cog.BuildErrors); ok && len(list) == 0 { //nolint:errorlint // the decoder returns an empty list instead of nil
		return nil
	}
	return err
}

// valid checks a decoded value against the bounds in Grafana's schema.
func valid(v any) error {
	if v, ok := v.(interface{ Validate() error }); ok {
		return v.Validate()
	}
	return nil
}

// decoded reads a dashboard with the types that are generated from Grafana's schema. The dashboard's own decoder skips
// parts of its panels, so decoded also decodes each panel, with its options, and each panel's fieldConfig.
func decoded(raw []byte) (panels []dashboard.Panel, err error) {
	var whole, scratch dashboard.Dashboard //nolint:staticcheck // Grafana imports the first version of the schema, too, and older Grafanas only this one
	if err := errors.Join(strict(raw, &scratch), json.Unmarshal(raw, &whole), valid(whole)); err != nil {
		return nil, err
	}
	var parts struct{ Panels []json.RawMessage }
	if err := json.Unmarshal(raw, &parts); err != nil {
		return nil, err
	}
	for i, raw := range parts.Panels {
		p, e := decodedPanel(raw)
		if e != nil {
			err = errors.Join(err, fmt.Errorf("panel %d: %w", i, e))
		}
		panels = append(panels, p)
	}
	return panels, err
}

func decodedPanel(raw []byte) (p dashboard.Panel, err error) {
	var kind struct {
		Type        string
		FieldConfig json.RawMessage
	}
	if err := json.Unmarshal(raw, &kind); err != nil {
		return p, err
	}
	if kind.Type == "row" {
		var row dashboard.RowPanel
		err := errors.Join(strict(raw, &dashboard.RowPanel{}), json.Unmarshal(raw, &row), valid(row))
		return dashboard.Panel{Type: row.Type, Title: row.Title, GridPos: row.GridPos}, err
	}
	if _, known := cog.ConfigForPanelcfgVariant(kind.Type); !known {
		return p, fmt.Errorf("Grafana has no panel of the type %q", kind.Type)
	}
	err = errors.Join(strict(raw, &dashboard.Panel{}), strict(kind.FieldConfig, &dashboard.FieldConfigSource{}), json.Unmarshal(raw, &p))
	if err != nil {
		return p, err
	}
	if err := errors.Join(valid(p), valid(p.Options), valid(p.FieldConfig), valid(p.FieldConfig.Defaults.Custom)); err != nil {
		return p, err
	}
	for i, q := range p.Targets {
		if _, ok := q.(*prometheus.Dataquery); !ok {
			return p, fmt.Errorf("query %d is not a query of Prometheus", i)
		}
	}
	if len(p.Targets) == 0 {
		return p, errors.New("the panel has no query")
	}
	return p, nil
}

// TestGrafanaSchema checks the dashboard against Grafana's schema.
func TestGrafanaSchema(t *testing.T) {
	raw, err := os.ReadFile(dashboardFile)
	if err != nil {
		t.Fatal(err)
	}
	panels, err := decoded(raw)
	if err != nil {
		t.Error(err)
	}
	if len(panels) < 20 {
		t.Errorf("only %d panels", len(panels))
	}
	for _, p := range panels {
		if len(*p.Title) > 40 {
			t.Errorf("on a small screen, the title %q is cut off", *p.Title)
		}
		if p.Type == "stat" && colourWithoutMetrics(p) != "red" {
			t.Errorf("the panel %q is not red if there are no metrics", *p.Title)
		}
	}
}

// colourWithoutMetrics returns the colour of a panel's value if the query has no result.
func colourWithoutMetrics(p dashboard.Panel) string {
	for _, m := range p.FieldConfig.Defaults.Mappings {
		if s := m.SpecialValueMap; s != nil && s.Options.Match == dashboard.SpecialValueMatchNull && s.Options.Result.Color != nil {
			return *s.Options.Result.Color
		}
	}
	return p.FieldConfig.Defaults.Thresholds.Steps[0].Color
}

// TestGrafanaSchemaFinds puts a wrong key or a value of a wrong type at each level of the dashboard. Each change must
// be found.
func TestGrafanaSchemaFinds(t *testing.T) {
	raw, err := os.ReadFile(dashboardFile)
	if err != nil {
		t.Fatal(err)
	}
	for name, change := range map[string][2]string{
		"a key of the dashboard":    {`"uid": "countersign"`, `"uid": "countersign", "nothing": 1`},
		"a type of the dashboard":   {`"editable": true`, `"editable": "yes"`},
		"a required key":            {`"schemaVersion":`, `"schema":`},
		"a variable's type":         {`"type": "datasource"`, `"type": 3`},
		"a key of a variable":       {`"label": "Prometheus"`, `"labels": "Prometheus"`},
		"a row's key":               {`"collapsed": false`, `"colapsed": false`},
		"a panel's key":             {`"description":`, `"descriptions":`},
		"a panel's type":            {`"type": "stat"`, `"type": "stats"`},
		"a panel's title":           {`"title": "Oldest"`, `"title": 7`},
		"a position's type":         {`"h": 8`, `"h": "8"`},
		"a width of no use":         {`"w": 8`, `"w": 40`},
		"a query's key":             {`"legendFormat":`, `"legend":`},
		"a query's type":            {`"instant": true`, `"instant": "yes"`},
		"a stat panel's option":     {`"graphMode":`, `"graph":`},
		"a type of an option":       {`"colorMode": "value"`, `"colorMode": 1`},
		"a key below an option":     {`"calcs":`, `"calculations":`},
		"a timeseries' option":      {`"tooltip":`, `"hover":`},
		"a type of a legend":        {`"showLegend": true`, `"showLegend": "yes"`},
		"a key of the fields":       {`"unit":`, `"units":`},
		"a type of the fields":      {`"min": 0`, `"min": "0"`},
		"a key of the thresholds":   {`"steps":`, `"step":`},
		"a type of a threshold":     {`"value": 3600`, `"value": "3600"`},
		"a key of a mapping":        {`"text": "no metrics"`, `"txt": "no metrics"`},
		"a custom option":           {`"lineWidth":`, `"width":`},
		"a type of a custom option": {`"fillOpacity": 10`, `"fillOpacity": "10"`},
		"a key below the custom option": {`"thresholdsStyle": {
              "mode":`, `"thresholdsStyle": {
              "style":`},
	} {
		t.Run(name, func(t *testing.T) {
			changed := bytes.Replace(raw, []byte(change[0]), []byte(change[1]), 1)
			if bytes.Equal(changed, raw) {
				t.Fatalf("the dashboard has no %s", change[0])
			}
			if _, err := decoded(changed); err == nil {
				t.Errorf("%s instead of %s is not found", change[1], change[0])
			}
		})
	}
}
