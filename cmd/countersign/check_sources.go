package main

import (
	"errors"

	"countersign/agent/httptool"
	"countersign/config"
)

// sourceFindings are warnings of what the policy's OpenAPI files hold, at the place where it names them: operations that were left out, and why.
func sourceFindings(file *config.File) config.Problems {
	var out config.Problems
	for _, api := range file.OpenAPI {
		_, faults := httptool.OpenAPI(api, nil)
		out = append(out, placed(file, apiSource(api.Name), faults).Warnings()...)
	}
	return out
}

// placed are faults of a source with their places in the policy file.
func placed(file *config.File, source string, faults []error) config.Problems {
	var out config.Problems
	for _, fault := range faults {
		p := &httptool.Problem{Path: source, Message: fault.Error()}
		errors.As(fault, &p)
		severity := config.Error
		if p.Warning {
			severity = config.Warning
		}
		out = append(out, file.Finding(severity, p.Path, p.Message, p.Hint))
	}
	return out
}
