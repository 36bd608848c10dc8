package config

import (
	"countersign/approvers"
	"countersign/config/yamldoc"
)

func readRiskKey(f yamldoc.Fields, key string, to *approvers.Risk) bool {
	v, ok := f[key]
	if !ok {
		return false
	}
	risk, ok := readRisk(v)
	if ok {
		*to = risk
	}
	return ok
}

var riskLevels = []string{"low", "medium", "high", "critical"}

func readRisk(v yamldoc.Value) (approvers.Risk, bool) {
	text, ok := v.Text(yamldoc.OneOf(riskLevels))
	if !ok {
		return 0, false
	}
	risk, err := approvers.ParseRisk(text)
	if err != nil {
		hint := "write " + yamldoc.OneOf(riskLevels)
		if meant := yamldoc.DidYouMean(text, riskLevels); meant != "" {
			hint = meant
		}
		v.Wrong(yamldoc.Quote(text)+" is not a risk level", hint)
		return 0, false
	}
	return risk, true
}
