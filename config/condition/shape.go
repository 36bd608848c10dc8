package condition

import (
	"bytes"
	"encoding/json"
	"errors"
	"slices"

	"github.com/santhosh-tekuri/jsonschema/v6"
)

// Shape has a schema's information about a value: the ways in which the value can be valid. A nil Shape has no
// information about the value. If a method does not understand a part of the schema, it treats every value as valid. So
// it never causes a false problem.
type Shape []variant

// variant is one way in which a value can be valid: the value must match every schema in the list.
type variant []*jsonschema.Schema

// maxVariants limits the variants of a shape. A schema with more variants is treated as unknown.
const maxVariants = 100

// ArgumentShape reads the schema of a tool's arguments. ArgumentShape returns nil if the schema can't be used.
func ArgumentShape(schema json.RawMessage) Shape {
	const name = "tool:///arguments"
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(schema))
	if err != nil {
		return nil
	}
	c := jsonschema.NewCompiler()
	c.UseLoader(noLoader{})
	if err := c.AddResource(name, doc); err != nil {
		return nil
	}
	root, err := c.Compile(name)
	if err != nil {
		return nil
	}
	return shapeOf([]*jsonschema.Schema{root})
}

// noLoader refuses references that lead out of the schema.
type noLoader struct{}

func (noLoader) Load(string) (any, error) { return nil, errors.New("a reference leaves the schema") }

// shapeOf returns the ways in which a value can match all of the schemas. If shapeOf does not understand a schema, or
// if there are too many ways, shapeOf returns nil.
func shapeOf(schemas []*jsonschema.Schema) Shape {
	s := &splitter{}
	s.split(nil, schemas)
	if s.lost {
		return nil
	}
	return s.out
}

type splitter struct {
	out   Shape
	steps int
	lost  bool // a part of the schema is not understood, or there are too many variants
}

// split adds the open schemas, which were not examined yet, to the settled schemas. A schema may offer alternatives,
// such as anyOf. For each choice among the alternatives of the open schemas, the function makes one variant.
func (s *splitter) split(settled variant, open []*jsonschema.Schema) {
	s.steps++
	if s.lost = s.lost || s.steps > 10*maxVariants || len(s.out) > maxVariants; s.lost {
		return
	}
	if len(open) == 0 {
		s.out = append(s.out, settled)
		return
	}
	now, open := open[0], open[1:]
	switch {
	case slices.Contains(settled, now):
		s.split(settled, open)
		return
	case now.Bool != nil && !*now.Bool:
		return // no value is valid
	case now.DynamicRef != nil, now.RecursiveRef != nil, now.UnevaluatedProperties != nil, now.UnevaluatedItems != nil,
		len(now.DependentSchemas) > 0, len(now.Dependencies) > 0:
		s.lost = true
		return
	}
	settled = append(slices.Clip(settled), now)
	open = append(slices.Clip(open), now.AllOf...)
	if now.Ref != nil {
		open = append(open, now.Ref)
	}
	combinations, ok := choices(now)
	s.lost = s.lost || !ok
	for _, choice := range combinations {
		s.split(settled, append(slices.Clip(open), choice...))
	}
}

// choices returns the combinations of a schema's alternatives. ok is false if there are too many combinations.
func choices(s *jsonschema.Schema) (out [][]*jsonschema.Schema, ok bool) {
	out = [][]*jsonschema.Schema{nil}
	choose := func(options ...[]*jsonschema.Schema) {
		var more [][]*jsonschema.Schema
		for _, chosen := range out {
			for _, o := range options {
				more = append(more, append(slices.Clip(chosen), o...))
			}
		}
		out = more[:min(len(more), maxVariants+1)]
	}
	for _, group := range [][]*jsonschema.Schema{s.AnyOf, s.OneOf} {
		var options [][]*jsonschema.Schema
		for _, o := range group {
			options = append(options, []*jsonschema.Schema{o})
		}
		if len(options) > 0 {
			choose(options...)
		}
	}
	if s.If != nil {
		choose(present(s.If, s.Then), present(s.Else))
	}
	return out, len(out) <= maxVariants
}

func present(schemas ...*jsonschema.Schema) []*jsonschema.Schema {
	return slices.DeleteFunc(schemas, func(s *jsonschema.Schema) bool { return s == nil })
}
