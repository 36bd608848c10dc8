package httptool

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strconv"
	"strings"

	"github.com/getkin/kin-openapi/openapi3"
	"go.yaml.in/yaml/v3"

	"countersign/config"
)

// Limits of an OpenAPI file.
const (
	maxFileSize   = 8 << 20  // bytes
	maxFileValues = 1 << 20  // values of a YAML file, including values that aliases repeat
	maxFileDepth  = 200      // levels
	maxOperations = 500      // operations that become tools
	maxSchema     = 64 << 10 // bytes of one tool's argument schema
)

// document is an OpenAPI file as plain JSON values. Numbers keep their original text.
type document struct {
	root map[string]any
	v31  bool // version 3.1 or later: schemas are JSON Schema 2020-12
}

// readDocument reads a file. If a readable file violates the specification, invalid describes the first violation.
func readDocument(c config.OpenAPI) (d *document, invalid string, err error) {
	data := c.Data
	if c.Fault != nil {
		return nil, "", c.Fault
	}
	if data == nil {
		if data, err = ReadFile(c.File); err != nil {
			return nil, "", err
		}
	}
	tree, err := parseTree(data)
	if err != nil {
		return nil, "", err
	}
	root, ok := tree.(map[string]any)
	if !ok {
		return nil, "", errors.New("is not an OpenAPI description; it begins with openapi: 3.1.0")
	}
	// A version must be a text. In many files, the version has no quotes, so the YAML parser reads a number.
	quoteVersion(root, "openapi")
	if info, ok := root["info"].(map[string]any); ok {
		quoteVersion(info, "version")
	}
	version, _ := root["openapi"].(string)
	switch {
	case root["swagger"] != nil:
		return nil, "", errors.New("uses OpenAPI 2 (Swagger); convert it to OpenAPI 3")
	case strings.HasPrefix(version, "3.0"):
	case strings.HasPrefix(version, "3.1"):
	default:
		return nil, "", fmt.Errorf("is of OpenAPI version %.20q; only 3.0 and 3.1 are supported", version)
	}
	d = &document{root: root, v31: strings.HasPrefix(version, "3.1")}
	invalid, err = d.validate()
	return d, invalid, err
}

// ReadFile reads an OpenAPI file's content. The error does not name the file.
func ReadFile(path string) ([]byte, error) {
	if info, err := os.Stat(path); err == nil && !info.Mode().IsRegular() && !info.IsDir() {
		return nil, errors.New("can't be read: it is not a regular file") // reading it could block forever
	}
	f, err := os.Open(path)
	var at *fs.PathError
	if errors.As(err, &at) {
		err = at.Err
	}
	if err != nil {
		return nil, fmt.Errorf("can't be read: %w", err)
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, maxFileSize+1))
	switch {
	case errors.As(err, &at):
		return nil, fmt.Errorf("can't be read: %w", at.Err)
	case err != nil:
		return nil, fmt.Errorf("can't be read: %w", err)
	case len(data) > maxFileSize:
		return nil, fmt.Errorf("is larger than %d MB", maxFileSize>>20)
	}
	return data, nil
}

func quoteVersion(object map[string]any, key string) {
	if n, ok := object[key].(json.Number); ok {
		object[key] = n.String()
	}
}

// validate checks the file against the OpenAPI specification. An error means that the file can't be used, for example
// because a reference can't be resolved.
func (d *document) validate() (invalid string, err error) {
	data, err := json.Marshal(d.root)
	if err != nil {
		return "", fmt.Errorf("is not an OpenAPI description: %w", err)
	}
	ctx := context.Background()
	loader := openapi3.NewLoader() // the loader reads no other file and contacts no host
	doc, err := loader.LoadFromData(data)
	if err != nil {
		return "", fmt.Errorf("is not an OpenAPI description: %.300s", strings.Join(strings.Fields(err.Error()), " "))
	}
	err = doc.Validate(ctx, openapi3.DisableExamplesValidation(), openapi3.DisableSchemaDefaultsValidation(), openapi3.DisableSchemaPatternValidation(),
		openapi3.AllowExtraSiblingFields("pathItems")) // version 3.1 allows this field
	if err != nil {
		invalid = fmt.Sprintf("%.300s", strings.Join(strings.Fields(err.Error()), " "))
	}
	return invalid, nil
}

// parseTree parses JSON or YAML into plain values.
func parseTree(data []byte) (any, error) {
	data = bytes.TrimPrefix(data, []byte("\xef\xbb\xbf"))
	if json.Valid(data) {
		dec := json.NewDecoder(bytes.NewReader(data))
		dec.UseNumber()
		var tree any
		if err := dec.Decode(&tree); err != nil {
			return nil, fmt.Errorf("is not JSON: %w", err)
		}
		return tree, nil
	}
	var node yaml.Node
	if err := yaml.Unmarshal(data, &node); err != nil {
		return nil, fmt.Errorf("is neither JSON nor YAML: %.200s", strings.TrimPrefix(err.Error(), "yaml: "))
	}
	t := treeOf{left: maxFileValues}
	return t.value(&node, 0)
}

// treeOf converts YAML to plain values. treeOf limits the number of values, because YAML aliases can be recursive or
// repeat values.
type treeOf struct{ left int }

func (t *treeOf) value(n *yaml.Node, depth int) (any, error) {
	if t.left--; t.left < 0 || depth > maxFileDepth {
		return nil, fmt.Errorf("is too large: it has more than %d values (counting those that aliases repeat), is nested deeper than %d levels, or contains an alias of itself", maxFileValues, maxFileDepth)
	}
	switch n.Kind {
	case yaml.DocumentNode:
		return t.value(n.Content[0], depth)
	case yaml.AliasNode:
		return t.value(n.Alias, depth+1)
	case yaml.MappingNode:
		return t.object(n, depth)
	case yaml.SequenceNode:
		list := make([]any, 0, len(n.Content))
		for _, item := range n.Content {
			v, err := t.value(item, depth+1)
			if err != nil {
				return nil, err
			}
			list = append(list, v)
		}
		return list, nil
	}
	return scalar(n), nil
}

func (t *treeOf) object(n *yaml.Node, depth int) (any, error) {
	out := map[string]any{}
	var merged []*yaml.Node
	for i := 0; i+1 < len(n.Content); i += 2 {
		key, item := n.Content[i], n.Content[i+1]
		if key.Tag == "!!merge" {
			merged = append(merged, item)
			continue
		}
		if key.Kind != yaml.ScalarNode {
			return nil, fmt.Errorf("has a key on line %d that is not text", key.Line)
		}
		if _, twice := out[key.Value]; twice {
			return nil, fmt.Errorf("has the key %.40q twice on line %d", key.Value, key.Line)
		}
		v, err := t.value(item, depth+1)
		if err != nil {
			return nil, err
		}
		out[key.Value] = v
	}
	for _, m := range merged {
		v, err := t.value(m, depth+1)
		if err != nil {
			return nil, err
		}
		sources, list := v.([]any)
		if !list {
			sources = []any{v}
		}
		for _, s := range sources {
			from, ok := s.(map[string]any)
			if !ok {
				return nil, fmt.Errorf("merges a value on line %d that is not a mapping", m.Line)
			}
			for k, v := range from {
				if _, own := out[k]; !own {
					out[k] = v
				}
			}
		}
	}
	return out, nil
}

// scalar converts a scalar. Numbers keep their digits, and a date is a text.
func scalar(n *yaml.Node) any {
	switch n.ShortTag() {
	case "!!null":
		return nil
	case "!!bool":
		return strings.EqualFold(n.Value, "true")
	case "!!int":
		if json.Valid([]byte(n.Value)) {
			return json.Number(n.Value)
		}
		if i, err := strconv.ParseInt(n.Value, 0, 64); err == nil { // 0x10, +5
			return json.Number(strconv.FormatInt(i, 10))
		}
	case "!!float":
		if json.Valid([]byte(n.Value)) {
			return json.Number(n.Value)
		}
		if f, err := strconv.ParseFloat(n.Value, 64); err == nil {
			if text, err := json.Marshal(f); err == nil { // Marshal fails for infinity and NaN
				return json.Number(text)
			}
		}
	}
	return n.Value
}
