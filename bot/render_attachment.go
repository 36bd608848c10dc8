package bot

import "fmt"

// attachment names a file that a run brought back, for a Slack that takes none.
func (s scene) attachment() *page {
	p := new(page)
	f := s.File
	what := "a file"
	if f.Whole {
		what = "a result that is too long for messages"
	}
	p.para(say("📎 ").strong(name(s.Execution.Tool)).say(" brought back " + what + ", which could not be put here, because Slack takes no files from this app:"))
	p.exact(name(f.Name))
	p.para(say(short(oneLine(f.Type), maxNameShown) + ", " + sizeOf(f.Size) + ". Whoever runs this bot can add the scope files:write; the file is kept as long as the conversation is."))
	return p
}

// sizeOf says a size for people.
func sizeOf(n int) string {
	switch {
	case n < 1<<10:
		return plural(n, "byte")
	case n < 1<<20:
		return fmt.Sprintf("%.1f KiB", float64(n)/(1<<10))
	}
	return fmt.Sprintf("%.1f MiB", float64(n)/(1<<20))
}
