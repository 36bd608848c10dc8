package argument

import (
	"encoding/json"
	"testing"
)

func TestMaskedText(t *testing.T) {
	got := MaskedText([]byte(`{"card":{"number":"4111 1111 1111 4242","name":"Ann ⟨masked⟩"},"pins":["0815",{"a":1}],"pw":"correct horse","empty":{}}`), []string{"card.number", "pins", "pw"})
	want := "card:\n  number: ⟨masked, 19 characters, ends in 4242⟩\n  name:   \"Ann ⟨U+27E8⟩masked⟨U+27E9⟩\"\npins:  ⟨masked⟩\npw:    ⟨masked, 13 characters⟩\nempty: {}"
	if got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	if got := MaskedText([]byte(`not JSON 4242`), []string{"x"}); got != "⟨masked⟩" {
		t.Errorf("an unreadable value is shown: %s", got)
	}
}

func TestWithoutSecrets(t *testing.T) {
	got := withoutSecrets([]byte(` { "a" : 1.50, "card":{"number":"4242", "name" : "Ann"}, "list":[{"pin":1},{"pin":2,"b":"c"}] }`), []string{"card.number", "list.pin"})
	if want := `{"a" : 1.50,"card":{"name" : "Ann"},"list":[{},{"b":"c"}]}`; string(got) != want {
		t.Errorf("got %s, want %s", got, want)
	}
	if !json.Valid(got) {
		t.Error("not JSON")
	}
}
