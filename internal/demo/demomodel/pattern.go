package demomodel

import (
	"regexp"
	"sync"
)

// pattern is a regular expression that is compiled at its first use. The package has hundreds of patterns, and
// compiling all of them at the start would slow down every command of the program.
type pattern struct {
	compile func() *regexp.Regexp
}

func lazily(expression string) *pattern {
	return &pattern{sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(expression) })}
}

// re returns a pattern that ignores case.
func re(expression string) *pattern { return lazily(`(?i)` + expression) }

func (p *pattern) MatchString(s string) bool            { return p.compile().MatchString(s) }
func (p *pattern) FindString(s string) string           { return p.compile().FindString(s) }
func (p *pattern) FindStringIndex(s string) []int       { return p.compile().FindStringIndex(s) }
func (p *pattern) FindStringSubmatch(s string) []string { return p.compile().FindStringSubmatch(s) }
func (p *pattern) FindStringSubmatchIndex(s string) []int {
	return p.compile().FindStringSubmatchIndex(s)
}
func (p *pattern) FindAllString(s string, n int) []string { return p.compile().FindAllString(s, n) }
func (p *pattern) FindAllStringIndex(s string, n int) [][]int {
	return p.compile().FindAllStringIndex(s, n)
}

func (p *pattern) FindAllStringSubmatch(s string, n int) [][]string {
	return p.compile().FindAllStringSubmatch(s, n)
}

func (p *pattern) FindAllStringSubmatchIndex(s string, n int) [][]int {
	return p.compile().FindAllStringSubmatchIndex(s, n)
}

func (p *pattern) ReplaceAllString(s, by string) string { return p.compile().ReplaceAllString(s, by) }

func (p *pattern) ReplaceAllStringFunc(s string, by func(string) string) string {
	return p.compile().ReplaceAllStringFunc(s, by)
}
