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
		for _, fault := range faults {
			var p *httptool.Problem
			if errors.As(fault, &p) && p.Warning {
				out = append(out, file.Finding(config.Warning, p.Path, p.Message, p.Hint))
			}
		}
	}
	return out
}
