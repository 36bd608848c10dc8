// Package scenario has the language of countersign demo --play: what people do, what happens, and what must be seen.
//
// [Parse] reads a scenario file (scenario.go describes the language; verbs.go, lines_time.go and lines_pause.go have
// its lines). [Play] plays it with a [Demo]: people act through the API of the workspace's page (click.go, form.go),
// and the transcript tells what they could newly see (news.go, told.go, describe.go). Nothing here starts or stops a
// process or sets a clock: the demo does, where the interface asks for it. The store is only read.
package scenario
