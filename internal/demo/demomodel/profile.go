package demomodel

import "strings"

var (
	deactivating = re(`\b(?:de-?activat\w*|suspend\w*|pause|put on hold|freeze)\b`)
	activating   = re(`\b(?:re-?activat\w*|unsuspend\w*|activate)\b`)
	newName      = re(`\b(?:name|rename\b.*?)\b.*?\b(?:to|into|=|is now|should be)\s+"?([^"\n]+?)"?(?:[,.;]|$| and\b| please\b)`)
	newEmail     = re(`\be-?mail(?: address)?\b`)
	newPhone     = re(`\b(?:phone|telephone|mobile|cell)(?: number)?\b.*?(\+?\d[\d ()/.-]{4,}\d)`)
	newLanguage  = re(`\b(?:language\b.*?|speaks? |to )\b(english|german|french|spanish|deutsch|français|español|en|de|fr|es)\b`)
	speaking     = re(`language|speak`)
	languages    = map[string]string{
		"english": "en", "en": "en",
		"german": "de", "deutsch": "de", "de": "de",
		"french": "fr", "français": "fr", "fr": "fr",
		"spanish": "es", "español": "es", "es": "es",
	}
)

// readProfile reads the requested changes. If the text asks to change the e-mail address, its last address is the new
// one. This address is removed from w.emails, because it does not identify the customer.
func (w *request) readProfile(text string) {
	set := func(name, value string) {
		if value = strings.TrimSpace(value); value != "" {
			w.profile = append(w.profile, field{name, value})
		}
	}
	if m := newName.FindStringSubmatch(withoutEmails(text)); m != nil {
		set("name", strings.TrimSpace(m[1]))
		if strings.Contains(m[1], w.name) {
			w.name = findName(strings.Replace(text, m[1], "", 1))
		}
	}
	if n := len(w.emails); newEmail.MatchString(withoutEmails(text)) && n > 0 {
		set("email", w.emails[n-1])
		if w.emails = w.emails[:n-1]; n == 1 && w.name == "" {
			w.name = findName(withoutEmails(text))
		}
	}
	if m := newPhone.FindStringSubmatch(text); m != nil {
		set("phone", m[1])
	}
	if speaking.MatchString(text) {
		if m := newLanguage.FindStringSubmatch(text); m != nil {
			set("language", languages[strings.ToLower(m[1])])
		}
	}
	switch {
	case deactivating.MatchString(text):
		set("status", "deactivated")
	case activating.MatchString(text):
		set("status", "active")
	}
}

func withoutEmails(text string) string { return emailInText.ReplaceAllString(text, "@") }
