package bot

import (
	"fmt"

	"countersign/approvers"
)

// head shows a signed head of the history, to be kept: with it, it can be found out later whether anything was changed.
func (s scene) head() *page {
	p := new(page)
	line := say("🔏 ").strong(fmt.Sprintf("Audit head %d", s.Head.Number)).say(" seals everything that was recorded so far: " + plural(int(s.Head.Size), "record"))
	if head, err := approvers.ReadHead(s.Head.Note); err == nil {
		line.say(", ").at(head.At, dayTime)
	}
	p.para(line.say("."))
	p.exact(approvers.InLine(s.Head.Note))
	p.small("There is nothing to do. Kept here, this shows later whether any of those records was changed or removed: copy it into a file, and run countersign audit verify --heads FILE.")
	return p
}
