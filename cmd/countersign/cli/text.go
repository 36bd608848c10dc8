package cli

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"countersign/approvers"
	"countersign/config/yamldoc"
)

// Size formats a number of bytes: "512 bytes", "1.5 MiB".
func Size(n int64) string {
	units := []string{"bytes", "KiB", "MiB", "GiB", "TiB"}
	f, i := float64(n), 0
	for ; f >= 1024 && i < len(units)-1; i++ {
		f /= 1024
	}
	if i == 0 {
		return fmt.Sprintf("%d bytes", n)
	}
	return fmt.Sprintf("%.1f %s", f, units[i])
}

// Count formats a number with its noun: "1 error", "2 errors".
func Count(n int, noun string) string {
	if n != 1 {
		noun += "s"
	}
	return strings.Join([]string{fmt.Sprint(n), noun}, " ")
}

// Percent formats the quotient part/of as a percentage without decimals.
func Percent(part, of int) string { return fmt.Sprintf("%.0f %%", 100*float64(part)/float64(of)) }

// Duration formats a duration as precisely as is useful: 2.4s, 48s, 1m2s, 2h5m.
func Duration(d time.Duration) string {
	switch {
	case d < 10*time.Second:
		return d.Round(100 * time.Millisecond).String()
	case d < time.Hour:
		return d.Round(time.Second).String()
	}
	return strings.TrimSuffix(d.Round(time.Minute).String(), "0s")
}

// Moment formats a time in UTC.
func Moment(t time.Time) string { return t.UTC().Format(time.DateTime) + " UTC" }

// Problems returns the errors of a policy file one by one, without its warnings. For any other error, Problems returns
// a list with only that error.
func Problems(err error) []error {
	var all yamldoc.Problems
	if !errors.As(err, &all) {
		return []error{err}
	}
	var out []error
	for _, p := range all.Errors() {
		out = append(out, p)
	}
	return out
}

// WaitsFor names everybody who can decide the current stage of a request: the stage's roles, the roles that an
// escalation added, and the people who were invited.
func WaitsFor(req approvers.Request) string {
	stage := req.CurrentStage()
	stage.Quorum = 1
	names := append([]string{stage.String()}, req.Joined...)
	for _, i := range req.Invited {
		names = append(names, i.Name)
	}
	return strings.Join(names, " or ")
}

// StageWords describes a stage with its people.
func StageWords(p *approvers.Policy, s approvers.Stage) string {
	words := s.String()
	var members []string
	for _, name := range s.Roles() {
		role, _ := p.Role(name)
		for _, m := range role.Members {
			who := m.Value
			if m.Kind == approvers.MemberGroup {
				who = "@" + who
			}
			members = append(members, who)
		}
	}
	if s.Group != "" {
		return words + " (its people who hold the role)"
	}
	return words + " (" + strings.Join(members, ", ") + ")"
}

// Ago returns the time d before now. If d is not positive, Ago returns the zero time, which stands for the start of the
// history.
func Ago(d time.Duration) time.Time {
	if d <= 0 {
		return time.Time{}
	}
	return time.Now().Add(-d)
}
