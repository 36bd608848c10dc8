package cli

import "testing"

func TestCheckReason(t *testing.T) {
	for reason, valid := range map[string]bool{"": false, " \n": false, "\u3164\u200b": false, " agreed by phone ": true} {
		if err := CheckReason(&reason); (err == nil) != valid {
			t.Errorf("reason %q: %v", reason, err)
		}
	}
}
