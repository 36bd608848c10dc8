// Package scenario reads and plays the scenarios of countersign demo --play. A scenario says what people do, what
// happens, and what people must then see.
//
// [Parse] reads a scenario file (scenario.go describes the language; verbs.go and lines_*.go have its lines). [Play]
// plays it with a [Demo]: people act through the API of the workspace's page (click.go, form.go), and the transcript
// tells what they could newly see (news.go, told.go, describe.go). The package itself never starts or stops a process or
// sets a clock; it calls the demo for that. It only reads the store.
package scenario
