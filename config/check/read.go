package check

import (
	"errors"
	"fmt"

	"countersign/approvers"
	"countersign/config"
	"countersign/config/yamldoc"
)

// Read reads a policy file as [config.ReadPolicy] does. If the file has errors, Read reports names that don't exist
// together with these errors. For the other problems of the policy, see [Run].
func Read(path string) (*config.File, error) {
	data, err := config.ReadFile(path)
	if err != nil {
		return nil, err
	}
	return Parse(path, data)
}

// Parse parses a policy file's content as Read does.
func Parse(name string, data []byte) (*config.File, error) {
	file, err := config.ParsePolicy(name, data)
	var problems yamldoc.Problems
	if err == nil || file == nil || !errors.As(err, &problems) {
		return file, err
	}
	return nil, append(problems, wrongNames(file)...).InOrder()
}

// wrongNames reports names that don't exist, in a file that has other errors. wrongNames makes no other checks,
// because the other checks depend on values that may be wrong.
func wrongNames(f *config.File) yamldoc.Problems {
	c := &checker{file: f, policy: f.Policy, broken: map[string]bool{}}
	if len(c.policy.Approvers) > 0 {
		c.pausers()
		for _, r := range c.policy.Approvers {
			if _, ok := c.policy.Role(r.Lead); !ok {
				c.lead(r)
			}
		}
		c.eachStageList(func(path, _ string, stages []approvers.Stage) {
			for i, s := range stages {
				c.unknownRoles(fmt.Sprintf("%s[%d]", path, i), s)
			}
		})
	}
	if len(c.policy.Tools) > 0 && c.sourceless() { // tools that come from servers or files are not known here
		c.known = []string{}
		c.names()
	}
	return c.problems.Errors()
}
