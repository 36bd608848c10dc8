package scriptedmodel

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"regexp"
	"slices"
)

// body is the request as received. Fields that can have several forms are kept as raw JSON.
type body struct {
	Model               string            `json:"model"`
	Messages            []json.RawMessage `json:"messages"`
	Tools               []json.RawMessage `json:"tools"`
	ToolChoice          json.RawMessage   `json:"tool_choice"`
	ParallelToolCalls   *bool             `json:"parallel_tool_calls"`
	Stream              bool              `json:"stream"`
	StreamOptions       *streamOptions    `json:"stream_options"`
	MaxTokens           *int              `json:"max_tokens"`
	MaxCompletionTokens *int              `json:"max_completion_tokens"`
	N                   *int              `json:"n"`
	Temperature         *float64          `json:"temperature"`
	TopP                *float64          `json:"top_p"`
	PresencePenalty     *float64          `json:"presence_penalty"`
	FrequencyPenalty    *float64          `json:"frequency_penalty"`

	// The next fields are accepted, but have no effect on a scripted model.
	Stop             json.RawMessage `json:"stop"`
	Seed             json.RawMessage `json:"seed"`
	User             json.RawMessage `json:"user"`
	Metadata         json.RawMessage `json:"metadata"`
	Store            json.RawMessage `json:"store"`
	Logprobs         json.RawMessage `json:"logprobs"`
	TopLogprobs      json.RawMessage `json:"top_logprobs"`
	LogitBias        json.RawMessage `json:"logit_bias"`
	ResponseFormat   json.RawMessage `json:"response_format"`
	ReasoningEffort  json.RawMessage `json:"reasoning_effort"`
	ServiceTier      json.RawMessage `json:"service_tier"`
	Verbosity        json.RawMessage `json:"verbosity"`
	SafetyIdentifier json.RawMessage `json:"safety_identifier"`
	PromptCacheKey   json.RawMessage `json:"prompt_cache_key"`
	Modalities       json.RawMessage `json:"modalities"`
	Prediction       json.RawMessage `json:"prediction"`
}

type streamOptions struct {
	IncludeUsage       bool  `json:"include_usage"`
	IncludeObfuscation *bool `json:"include_obfuscation"`
}

var (
	unknownName = regexp.MustCompile(`unknown field "(.*)"`)
	toolName    = regexp.MustCompile(`^[a-zA-Z0-9_-]{1,64}$`)
)

// decodeStrictly reads one JSON value and converts Go's errors to the service's errors. param is the path of the value,
// or empty for the whole body.
func decodeStrictly(data []byte, into any, param string) *apiError {
	d := json.NewDecoder(bytes.NewReader(data))
	d.DisallowUnknownFields()
	err := d.Decode(into)
	if err == nil {
		if _, err = d.Token(); err == io.EOF {
			return nil
		}
		return invalid(param, "", "We could not parse the JSON body of your request: something follows the value.")
	}
	var wrongType *json.UnmarshalTypeError
	if errors.As(err, &wrongType) {
		at := join(param, wrongType.Field)
		return invalid(at, "invalid_type", "Invalid type for '%s': expected %s, but got %s instead.", at, kindOf(wrongType.Type.Kind().String()), wrongType.Value)
	}
	if m := unknownName.FindStringSubmatch(err.Error()); m != nil {
		if param == "" {
			return invalid(m[1], "unknown_parameter", "Unknown parameter: '%s'.", m[1])
		}
		return invalid(join(param, m[1]), "unknown_parameter", "Unknown parameter: '%s'.", join(param, m[1]))
	}
	return invalid(param, "", "We could not parse the JSON body of your request: %v.", err)
}

func join(path, field string) string {
	if path == "" || field == "" {
		return path + field
	}
	return path + "." + field
}

// kindOf returns the JSON name of a Go kind.
func kindOf(kind string) string {
	switch kind {
	case "struct", "map":
		return "an object"
	case "slice":
		return "an array"
	case "bool":
		return "a boolean"
	case "int":
		return "an integer"
	case "float64":
		return "a number"
	}
	return "a string"
}

// parse checks the body and converts it to a Request. The caller then checks whether the model exists, and whether the
// prompt fits the model's context.
func parse(data []byte) (Request, *apiError) {
	var b body
	if fault := decodeStrictly(data, &b, ""); fault != nil {
		return Request{}, fault
	}
	if b.Model == "" {
		return Request{}, invalid("model", "missing_required_parameter", "Missing required parameter: 'model'.")
	}
	if fault := b.checkNumbers(); fault != nil {
		return Request{}, fault
	}
	r := Request{Model: b.Model, Stream: b.Stream, ParallelToolCalls: true, Raw: data}
	if b.StreamOptions != nil {
		if !b.Stream {
			return r, invalid("stream_options", "", "The 'stream_options' parameter is only allowed when 'stream' is enabled.")
		}
		r.IncludeUsage = b.StreamOptions.IncludeUsage
	}
	for _, limit := range []*int{b.MaxTokens, b.MaxCompletionTokens} {
		if limit != nil {
			r.MaxTokens = *limit
		}
	}
	var fault *apiError
	if r.Messages, fault = parseMessages(b.Messages); fault != nil {
		return r, fault
	}
	if r.Tools, fault = parseTools(b.Tools); fault != nil {
		return r, fault
	}
	if b.ParallelToolCalls != nil {
		if len(r.Tools) == 0 {
			return r, invalid("parallel_tool_calls", "", "Invalid value for 'parallel_tool_calls': it is only allowed when 'tools' are specified.")
		}
		r.ParallelToolCalls = *b.ParallelToolCalls
	}
	r.ToolChoice, fault = parseToolChoice(b.ToolChoice, r)
	return r, fault
}

func (b body) checkNumbers() *apiError {
	for _, v := range []struct {
		name     string
		value    *float64
		min, max float64
	}{
		{"temperature", b.Temperature, 0, 2},
		{"top_p", b.TopP, 0, 1},
		{"presence_penalty", b.PresencePenalty, -2, 2},
		{"frequency_penalty", b.FrequencyPenalty, -2, 2},
	} {
		if v.value != nil && (*v.value < v.min || *v.value > v.max) {
			return invalid(v.name, "decimal_out_of_range", "Invalid '%s': expected a value between %v and %v, but got %v instead.", v.name, v.min, v.max, *v.value)
		}
	}
	for _, v := range []struct {
		name  string
		value *int
	}{{"max_tokens", b.MaxTokens}, {"max_completion_tokens", b.MaxCompletionTokens}} {
		if v.value != nil && *v.value < 1 {
			return invalid(v.name, "integer_below_min_value", "Invalid '%s': expected a value of at least 1, but got %d instead.", v.name, *v.value)
		}
	}
	if b.MaxTokens != nil && b.MaxCompletionTokens != nil {
		return invalid("max_tokens", "invalid_parameter_combination", "Setting 'max_tokens' and 'max_completion_tokens' at the same time is not supported.")
	}
	if b.N != nil && *b.N != 1 {
		return invalid("n", "unsupported_value", "Unsupported value: 'n' is %d, and this model gives one answer.", *b.N)
	}
	return nil
}

func parseToolChoice(data json.RawMessage, r Request) (string, *apiError) {
	if len(data) == 0 || string(data) == "null" {
		return "auto", nil
	}
	if len(r.Tools) == 0 {
		return "", invalid("tool_choice", "", "Invalid value for 'tool_choice': 'tool_choice' is only allowed when 'tools' are specified.")
	}
	var word string
	if json.Unmarshal(data, &word) == nil {
		if !slices.Contains([]string{"none", "auto", "required"}, word) {
			return "", invalid("tool_choice", "invalid_value", "Invalid value: '%s'. Supported values are: 'none', 'auto', and 'required'.", word)
		}
		return word, nil
	}
	var named struct {
		Type     string `json:"type"`
		Function struct {
			Name string `json:"name"`
		} `json:"function"`
	}
	if fault := decodeStrictly(data, &named, "tool_choice"); fault != nil {
		return "", fault
	}
	if named.Type != "function" || !r.Offers(named.Function.Name) {
		return "", invalid("tool_choice", "", "Tool choice '%s' not found in 'tools' parameter.", named.Function.Name)
	}
	return named.Function.Name, nil
}
