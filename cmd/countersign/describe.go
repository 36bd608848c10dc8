package main

import (
	"encoding/json"
	"fmt"
	"strings"

	"countersign/approvers"
	"countersign/store"
)

// describe says where a call stands, in one line, and whether it waits for people who have its card.
func describe(r store.Reader, c store.Call) (line string, waits bool, err error) {
	about := c.Tool
	if c.Preview != "" {
		about += ": " + c.Preview
	}
	if c.Request == "" {
		if c.Outcome == "" {
			return "", false, nil
		}
		return verdict(about, c, " ran without asking"), false, nil
	}
	req, err := r.Request(c.Request)
	if err != nil {
		return "", false, err
	}
	surfaces, err := r.SurfacesOf(req.ID)
	if err != nil {
		return "", false, err
	}
	for _, s := range surfaces {
		if s.State == store.SurfaceWanted {
			return "", false, nil
		}
	}
	if req.State == approvers.Pending {
		progress := ""
		if quorum := req.Plan.Stages[req.Stage].Quorum; quorum > 1 {
			progress = fmt.Sprintf(" (%d of %d)", req.At(req.Stage), quorum)
		}
		return fmt.Sprintf("%s waits for %s%s%s", c.Tool, strings.Join(req.Roles(), " or "), progress, strings.TrimPrefix(about, c.Tool)), true, nil
	}
	if c.Outcome == "" {
		return "", false, nil
	}
	return decided(c, req), false, nil
}

func verdict(about string, c store.Call, ran string) string {
	if c.Outcome == approvers.OutcomeExecuted {
		tool, preview, _ := strings.Cut(about, ": ")
		if preview != "" {
			preview = ": " + preview
		}
		return tool + ran + preview
	}
	return fmt.Sprintf("%s: %s: %s", c.Tool, c.Outcome, reasonIn(c.Result))
}

// decided says who decided what about a call, and what became of it.
func decided(c store.Call, req approvers.Request) string {
	by := make([]string, 0, len(req.Decisions))
	for _, d := range req.Standing() {
		verb := map[approvers.DecisionKind]string{approvers.Approve: "approved", approvers.Modify: "changed and approved"}[d.Kind]
		by = append(by, fmt.Sprintf("%s by %s (%s)", verb, d.Name, d.Role))
	}
	if c.Outcome == approvers.OutcomeExecuted {
		return fmt.Sprintf("%s was %s and done", c.Tool, strings.Join(by, ", "))
	}
	if req.ClosedName != "" && req.State == approvers.Rejected {
		return fmt.Sprintf("%s was rejected by %s (%s): %s", c.Tool, req.ClosedName, req.ClosedRole, req.Reason)
	}
	if req.ClosedName != "" && req.State != approvers.Consumed {
		return fmt.Sprintf("%s was %s by %s", c.Tool, req.State, req.ClosedName)
	}
	return fmt.Sprintf("%s: %s: %s", c.Tool, c.Outcome, reasonIn(c.Result))
}

// reasonIn is the reason in a structured result.
func reasonIn(result string) string {
	var r approvers.Result
	if json.Unmarshal([]byte(result), &r) == nil && r.Reason != "" {
		return r.Reason
	}
	return result
}
