package notice

import (
	"fmt"

	"countersign/approvers"
	"countersign/bot/render/block"
	"countersign/store"
)

// AuditHead shows an audit head, which is a signed checkpoint of the history. Anybody who keeps a copy of the head can
// later check whether earlier records were changed.
func AuditHead(h store.Head) *block.Builder {
	p := new(block.Builder)
	line := block.Say("🔏 ").Strong(fmt.Sprintf("Audit head %d", h.Number)).Say(" seals everything that was recorded so far: " + block.Plural(int(h.Size), "record"))
	if head, err := approvers.ReadHead(h.Note); err == nil {
		line.Say(", ").At(head.At, block.DayTime)
	}
	p.Para(line.Say("."))
	p.Preformatted(approvers.InLine(h.Note))
	p.Small("You need not do anything now. To check later whether any of these records was changed or removed, copy this message into a file, and run countersign audit verify --heads FILE.")
	return p
}
