package render

import "fmt"

// attachment names a file that a run returned. It is used if Slack does not accept the file itself.
func (v View) attachment() *BlockBuilder {
	p := new(BlockBuilder)
	f := v.File
	what := "a file"
	if f.Whole {
		what = "a result that is too long for messages"
	}
	p.Para(Say("📎 ").Strong(Name(v.Execution.Tool)).Say(" brought back " + what + ", which could not be put here, because Slack takes no files from this app:"))
	p.exact(Name(f.Name))
	p.Para(Say(short(OneLine(f.Type), MaxNameShown) + ", " + sizeOf(f.Size) + ". Whoever runs this bot can add the scope files:write; the file is kept as long as the conversation is."))
	return p
}

// sizeOf formats a size for people.
func sizeOf(n int) string {
	switch {
	case n < 1<<10:
		return Plural(n, "byte")
	case n < 1<<20:
		return fmt.Sprintf("%.1f KiB", float64(n)/(1<<10))
	}
	return fmt.Sprintf("%.1f MiB", float64(n)/(1<<20))
}
