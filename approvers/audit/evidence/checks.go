package evidence

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strconv"
	"strings"

	"countersign/approvers"
)

// check is one verification that is made for the page.
type check struct {
	OK   bool
	Open bool // the result of the verification is unknown, which is not a fault
	Text string
}

// checks runs all verifications of a story. The text of each verification names the compared data. So the reader knows
// the limits of the verification.
func (s Story) checks() []check {
	out := append([]check{s.chainCheck()}, s.payloadChecks()...)
	out = append(out, s.unlessDamaged(s.runCheck(), "What ran"), s.unlessDamaged(s.shownCheck(), "What was shown"))
	out = append(out, s.recordCheck()...)
	return append(out, s.sealChecks()...)
}

// Faults returns the number of failed verifications on the page.
func (p Page) Faults() (n int) {
	for _, s := range p.Stories {
		for _, c := range s.checks() {
			if !c.OK && !c.Open {
				n++
			}
		}
	}
	return n
}

// unlessDamaged returns the given check. If a record of the chain can't be read, unlessDamaged returns an open check
// instead.
func (s Story) unlessDamaged(c check, what string) check {
	if len(s.Damaged) == 0 {
		return c
	}
	return check{Open: true, Text: what + " can't be compared with the chain, because not all of its records can be read."}
}

func (s Story) chainCheck() check {
	if n := len(s.Damaged); n > 0 {
		var seqs []string
		for _, seq := range s.Damaged {
			seqs = append(seqs, strconv.FormatUint(seq, 10))
		}
		return check{Text: fmt.Sprintf("The chain is damaged. These of its records can't be read and are not shown below: %s.", strings.Join(seqs, ", "))}
	}
	records := make([]approvers.AuditRecord, len(s.Entries))
	for i, e := range s.Entries {
		records[i] = e.AuditRecord
	}
	if err := approvers.VerifyChain(records); err != nil {
		return check{Text: "The chain is broken: " + err.Error() + "."}
	}
	return check{OK: true, Text: fmt.Sprintf("The chain is whole: %d records, each bound to the one before it by its hash.", len(records))}
}

// recordCheck compares the stored request with the chain. If the two agree, recordCheck returns no check.
func (s Story) recordCheck() []check {
	if s.Differs == "" {
		return nil
	}
	return []check{{Text: "The stored state differs from the chain: " + s.Differs + "."}}
}

// payloadChecks compares the texts with the hashes in the chain. Erased texts can't be compared.
func (s Story) payloadChecks() []check {
	var whole, erased, missing, changed int
	for _, e := range s.Entries {
		switch e.State {
		case Whole:
			whole++
		case Erased:
			erased++
		case Missing:
			missing++
		case Changed:
			changed++
		}
	}
	var out []check
	switch {
	case changed+missing > 0:
		out = append(out, check{Text: plural(strconv.Itoa(changed), "text was changed", "texts were changed") + " and " + plural(strconv.Itoa(missing), "is missing", "are missing") +
			" without a record that says why. People wrote these texts, or were shown them."})
	case whole == 1:
		out = append(out, check{OK: true, Text: "The one text below (arguments, a card, a reason or a result) matches its hash in the chain."})
	case whole > 1:
		out = append(out, check{OK: true, Text: fmt.Sprintf("All %d texts below (arguments, cards, reasons, results) match the hashes in the chain.", whole)})
	case erased == 0:
		out = append(out, check{OK: true, Text: "The records have no texts."})
	}
	if erased > 0 {
		out = append(out, check{Open: true, Text: plural(strconv.Itoa(erased), "text was erased", "texts were erased") +
			", as the records say. An erased text can't be compared with its hash in the chain."})
	}
	return out
}

// clientRuns says what the page does not prove about a client's run.
const clientRuns = "The client ran the tool itself, so Countersign does not know which bytes ran."

// runCheck compares each run with the last approval before the run.
func (s Story) runCheck() check {
	approved, runs := "", 0
	auto, restored, unknown := false, false, false
	for _, e := range s.Entries {
		switch e.Kind {
		case approvers.AuditProposed:
			auto = e.Facts["verdict"] == string(approvers.Auto) || e.Facts["grant"] != ""
			if auto {
				approved = e.Facts["digest"]
			}
		case approvers.AuditApproved:
			approved = e.Facts["digest"]
		case approvers.AuditReopened, approvers.AuditAdvanced:
			approved = ""
		case approvers.AuditClosed:
			restored = isLost(e.Facts)
		case approvers.AuditUnknown:
			unknown = true
		case approvers.AuditExecuting:
			runs++
			if e.Facts["digest"] != approved {
				return check{Text: "What ran is not what was approved: the digests differ."}
			}
		}
	}
	switch {
	case runs == 0 && unknown:
		return check{Open: true, Text: "It is not known whether the call ran: the record of its start is lost."}
	case runs == 0 && restored:
		return check{Open: true, Text: "It is not known whether the call ran after the backup: the records of a run, if there were any, are lost."}
	case runs == 0:
		return check{OK: true, Text: "Nothing was run."}
	case s.runner() != "" && auto:
		return check{OK: true, Text: "What the client claimed is what was proposed: the same digest. The policy, or a grant, let it run without asking. " + clientRuns}
	case s.runner() != "":
		return check{OK: true, Text: "What the client claimed is what was approved: the digest over its exact bytes is the same. " + clientRuns}
	case auto:
		return check{OK: true, Text: "What ran is what was proposed: the same digest. The policy, or a grant, let it run without asking."}
	}
	return check{OK: true, Text: "What ran is what was approved: the digest over its exact bytes is the same."}
}

// shownCheck compares each decision with the cards that were posted before the decision.
func (s Story) shownCheck() check {
	type showing struct{ rendering, digest string }
	showed := map[showing]bool{}
	known := map[string]bool{} // renderings of which a record says that they were posted
	for _, e := range s.Entries {
		if e.Kind == approvers.AuditShown {
			showed[showing{e.Facts["rendering"], e.Facts["digest"]}], known[e.Facts["rendering"]] = true, true
		}
	}
	posted := map[string]bool{} // renderings that were posted before the current record
	drawn := map[string]bool{}  // renderings that the page draws
	decisions, undrawn, early := 0, 0, false
	for _, e := range s.Entries {
		rendering := e.Facts["rendering"]
		switch {
		case e.Kind == approvers.AuditShown:
			sum := sha256.Sum256(e.Payload)
			if e.State == Whole && hex.EncodeToString(sum[:]) != rendering {
				return check{Text: "A card's data is not the rendering that its record names."}
			}
			posted[rendering], drawn[rendering] = true, drawn[rendering] || e.State == Whole
		case e.Kind == approvers.AuditDecided && rendering != "":
			decisions++
			if e.Facts["kind"] != string(approvers.Modify) && e.Facts["shown"] != e.Facts["digest"] {
				return check{Text: "A decision was made on a card that did not show the decided call: the digests differ."}
			}
			if known[rendering] && !showed[showing{rendering, e.Facts["shown"]}] {
				return check{Text: "The records of a decision and of its card name different calls: the digests differ."}
			}
			early = early || !posted[rendering]
			if !drawn[rendering] {
				undrawn++
			}
		}
	}
	return shownResult(decisions, undrawn, early)
}

// shownResult describes decisions on cards that have no fault.
func shownResult(decisions, undrawn int, early bool) check {
	switch {
	case early:
		return check{Open: true, Text: "A decision was made on a card whose post is not recorded before the decision: the click arrived before the post was recorded. Compare the decision with the card that follows it."}
	case decisions == 0:
		return check{OK: true, Text: "Nobody decided on a card."}
	case undrawn > 0 && decisions == 1:
		return check{Open: true, Text: "The one decision on a card was made on a version whose text the store no longer has. " +
			"According to its record, this version showed the digest of the decided call. What the person saw can't be checked."}
	case undrawn > 0:
		return check{Open: true, Text: fmt.Sprintf("Of the %d decisions on a card, %s made on a version whose text the store no longer has.", decisions, plural(strconv.Itoa(undrawn), "was", "were")) +
			" According to the records, each version showed the digest of the decided call. What the people saw on these versions can't be checked."}
	case decisions == 1:
		return check{OK: true, Text: "The one decision on a card was made on a version that is drawn below. This version showed the digest of the decided call."}
	}
	return check{OK: true, Text: fmt.Sprintf("Each of the %d decisions on a card was made on a version that is drawn below. This version showed the digest of the decided call.", decisions)}
}

// sealChecks verifies the signed head. A record that no head covers yet is not a fault.
func (s Story) sealChecks() []check {
	var out []check
	for _, f := range s.Seal.Faults {
		out = append(out, check{Text: f})
	}
	head := fmt.Sprintf("head %d of %s", s.Seal.Head, s.Seal.at())
	switch n := len(s.Entries); {
	case len(out) > 0:
		return out
	case s.Seal.Head == 0:
		return append(out, check{Open: true, Text: "This store has no signed heads. Without them, a chain that was replaced as a whole is not detected."})
	case s.Seal.Sealed == 0:
		out = append(out, check{Open: true, Text: "No signed head covers the records yet: they are newer than " + head + ". While the bot runs, it seals what is new within seconds."})
	case s.Seal.Sealed < n:
		out = append(out, check{Open: true, Text: fmt.Sprintf("Signed %s covers %d of the %d records, as a proof for each of them shows; the others are newer than the head.", head, s.Seal.Sealed, n)})
	default:
		out = append(out, check{OK: true, Text: fmt.Sprintf("Signed %s covers every record, %d in all, as a proof for each of them shows (RFC 6962): the records have not changed since then.", head, n)})
	}
	switch {
	case s.Seal.Key == "":
		out = append(out, check{Open: true, Text: "The head's signature was not checked with any key. Name the key that you trust with --key."})
	case s.Seal.Named:
		out = append(out, check{OK: true, Text: "The head is signed by the key that was named for this page."})
	default:
		out = append(out, check{OK: true, Text: "The head is signed by a key in the bot's own file. Compare this key, shown below, with the key that you were told. Compare the head with a copy that is kept elsewhere."})
	}
	return out
}

// The method returns the time of the head's signature, to the second.
func (s Seal) at() string { return s.At.UTC().Format("2006-01-02 15:04:05 UTC") }

// lines returns the head's values, for comparison with other copies.
func (s Seal) lines() [][2]string {
	if s.Head == 0 {
		return nil
	}
	lines := [][2]string{{"Number", fmt.Sprint(s.Head)}, {"Signed", s.at()}, {"Covers", fmt.Sprintf("the first %d records of the whole history", s.Size)}, {"Root", s.Root}}
	if s.Key != "" {
		lines = append(lines, [2]string{"Key", s.Key})
	}
	return lines
}
