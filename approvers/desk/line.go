package desk

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"countersign/approvers"
	"countersign/store"
)

// A line bounds how many undecided cards are open at one address: store.SettingLine holds one for each address at which the policy's
// cap was ever in force. What comes on top waits in line. It has no card yet, but it is pending like any other: its clocks run, an
// escalation shows it to the lead. A request names the lines that count it, so that it leaves them whatever becomes of it.
type line struct {
	Open  []inLine `json:"open,omitempty"`
	Held  []inLine `json:"held,omitempty"`
	Round int      `json:"round,omitempty"` // rises each time the first begins to wait: then people are told anew that there is a line
}

// inLine is one card of a line: a request, or the requests of a bundle.
type inLine struct {
	Bundle   string   `json:"bundle,omitempty"`
	Requests []string `json:"requests"`
}

// lineNotice names what the line's notice shows: the address, and which time that somebody waits there.
func lineNotice(address string, round int) string { return address + " " + strconv.Itoa(round) }

// noticed is the opposite of lineNotice.
func noticed(ref string) (address string, round int) {
	if i := strings.LastIndexByte(ref, ' '); i >= 0 {
		round, _ = strconv.Atoi(ref[i+1:]) // a ref that lineNotice did not make names no round
		address = ref[:i]
	}
	return address, round
}

// readLine reads an address's line; an empty one where there never was any.
func readLine(r store.Reader, address string) (line, store.Setting, error) {
	var l line
	s, err := r.Setting(store.SettingLine + address)
	if errors.Is(err, store.ErrNotFound) {
		return l, store.Setting{Key: store.SettingLine + address}, nil
	}
	if err != nil {
		return l, s, err
	}
	if err := json.Unmarshal(s.Value, &l); err != nil {
		return l, s, fmt.Errorf("line at %s: %w", address, err)
	}
	return l, s, nil
}

// changeLine changes an address's line, shows whose turn has come, and keeps the notice up to date. It returns the line as it is then.
func (t *tx) changeLine(address string, change func(*line)) (line, error) {
	l, s, err := readLine(t.Tx, address)
	if err != nil {
		return l, err
	}
	before := line{Open: slices.Clone(l.Open), Held: slices.Clone(l.Held), Round: l.Round}
	change(&l)
	turn := l.admit(t.policy.Caps.Approver)
	if l.equal(before) {
		return l, nil
	}
	if len(before.Held) == 0 && len(l.Held) > 0 {
		l.Round++
	}
	if s.Value, err = json.Marshal(l); err != nil {
		return l, fmt.Errorf("line at %s: %w", address, err)
	}
	if err := t.PutSetting(s); err != nil {
		return l, err
	}
	for _, c := range turn {
		for _, id := range c.Requests {
			if err := t.nextInLine(id, address); err != nil {
				return l, err
			}
		}
	}
	switch {
	case l.Round != before.Round:
		return l, t.want(store.Surface{Kind: store.SurfaceLine, Ref: lineNotice(address, l.Round), To: address})
	case !slices.EqualFunc(before.Held, l.Held, inLine.equal):
		return l, t.changedRef(lineNotice(address, l.Round))
	}
	return l, nil
}

// enter counts a request at an address where its card is to be shown. It reports whether the request has to wait in line; then
// approving it asks for a typed value. Nothing waits that is counted there already, and a bundle's requests share one fate.
func (t *tx) enter(id, address string) (waits bool, err error) {
	most := t.policy.Caps.Approver
	r, err := t.Request(id)
	if err != nil {
		return false, err
	}
	counted := slices.Contains(r.Lines, address)
	if most == 0 && !counted {
		return false, nil
	}
	l, err := t.changeLine(address, func(l *line) {
		if !counted {
			l.add(r, len(l.Held) > 0 || len(l.Open) >= most)
		}
	})
	waits = l.waits(id)
	if err != nil || counted {
		return waits, err
	}
	if waits && r.StepUp == "" {
		r.StepUp = fmt.Sprintf("It had to wait in line behind %s", cards(len(l.Open)))
	}
	r.Lines = append(slices.Clone(r.Lines), address)
	return waits, t.PutRequest(r)
}

func cards(n int) string {
	if n == 1 {
		return "another undecided card"
	}
	return fmt.Sprintf("%d other undecided cards", n)
}

// wantInLine puts a request before the people at an address, or in line where as many cards are open there as the policy allows.
func (t *tx) wantInLine(r approvers.Request, to string) error {
	if t.policy.Caps.Approver == 0 && len(r.Lines) == 0 {
		return t.wantThere(r, to)
	}
	if waits, err := t.enter(r.ID, to); err != nil || waits {
		return err
	}
	return t.wantThere(r, to)
}

// wantThere shows a request at an address: as an escalation to a lead, in its bundle, or on a card of its own.
func (t *tx) wantThere(r approvers.Request, to string) error {
	if !slices.Contains(t.addresses(r), to) {
		for _, lead := range r.Joined {
			if to == toRole+lead {
				return t.wantAt(r, store.SurfaceEscalation, to, lead)
			}
		}
	}
	if r.Bundled() {
		return t.wantBundle(r, to)
	}
	return t.wantAt(r, store.SurfaceCard, to, "")
}

// nextInLine shows a request at an address where its turn has come.
func (t *tx) nextInLine(id, address string) error {
	r, err := t.Request(id)
	if err != nil || r.State != approvers.Pending {
		return err
	}
	if err := t.wantThere(r, address); err != nil {
		return err
	}
	return t.linkCard(id) // the asker's thread says no longer that it waits in line
}
