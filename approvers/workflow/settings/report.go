package settings

import (
	"time"

	"countersign/store"
)

// Report is the setting with the newest weekly report. The figures are stored, so that each attempt to post the report
// shows the same figures. The report contains no names of people, and no reasons that people wrote.
type Report struct {
	Week       string    `json:"week"`  // approvers.Week.Name
	Since      time.Time `json:"since"` // in the policy's time zone
	Until      time.Time `json:"until"`
	End        time.Time `json:"end"`             // the report is not posted from this time on
	Quiet      bool      `json:"quiet,omitempty"` // during the week, there was no call, and no request waited
	Asked      int       `json:"asked,omitempty"`
	Approved   int       `json:"approved,omitempty"`
	Rejected   int       `json:"rejected,omitempty"`
	Expired    int       `json:"expired,omitempty"`
	Open       int       `json:"open,omitempty"` // requests that waited at the end of the week
	Automatic  int       `json:"automatic,omitempty"`
	Granted    int       `json:"granted,omitempty"` // automatic runs under a grant
	Observed   int       `json:"observed,omitempty"`
	Unknown    int       `json:"unknown,omitempty"`
	BreakGlass int       `json:"break_glass,omitempty"`
	Decided    int       `json:"decided,omitempty"` // decisions with a recorded decision time
	Half       int64     `json:"half,omitempty"`    // the median decision time, in milliseconds
	Most       int64     `json:"most,omitempty"`    // the 95th percentile of the decision time, in milliseconds
	Timed      int       `json:"timed,omitempty"`   // approvals with a recorded decision time
	Quick      int       `json:"quick,omitempty"`   // the number of these approvals that were too fast for the card to have been read
	Waits      []Wait    `json:"waits,omitempty"`
	Opposed    []Count   `json:"opposed,omitempty"`   // the tools with the most rejected requests
	Unopposed  []Count   `json:"unopposed,omitempty"` // tools with the most approvals, and with no rejection, change or revocation
	Rules      int       `json:"rules,omitempty"`     // rules of tools that were called
	Unmatched  int       `json:"unmatched,omitempty"` // the number of these rules that matched no call
	Damaged    int       `json:"damaged,omitempty"`   // rows of the history that are not counted
}

// Wait says how many requests wait for a role.
type Wait struct {
	Role  string    `json:"role"`
	Open  int       `json:"open"`
	Since time.Time `json:"since"` // when the oldest request began to wait
}

// Count is a number of requests for a tool's calls.
type Count struct {
	Tool string `json:"tool"`
	N    int    `json:"n"`
}

// ReadReport reads the newest weekly report, or the zero value.
func ReadReport(r store.Reader) (p Report, s store.Setting, err error) {
	s, err = readJSON(r, store.SettingReport, &p)
	return p, s, err
}
