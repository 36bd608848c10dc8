package main

import (
	"errors"

	"countersign/agent/httptool"
	"countersign/config"
	"countersign/config/yamldoc"
)

// sourceFindings returns warnings about the policy's OpenAPI files, such as omitted operations, with the position in
// the policy file.
func sourceFindings(file *config.File) yamldoc.Problems {
	var out yamldoc.Problems
	for _, api := range file.OpenAPI {
		_, faults := httptool.OpenAPI(api, nil)
		out = append(out, placed(file, apiSource(api.Name), faults).Warnings()...)
	}
	return out
}

// placed converts faults of a source to problems with positions in the policy file.
func placed(file *config.File, source string, faults []error) yamldoc.Problems {
	var out yamldoc.Problems
	for _, fault := range faults {
		p := &httptool.Problem{Path: source, Message: fault.Error()}
		errors.As(fault, &p)
		severity := yamldoc.Error
		if p.Warning {
			severity = yamldoc.Warning
		}
		out = append(out, file.Finding(severity, p.Path, p.Message, p.Hint))
	}
	return out
}
