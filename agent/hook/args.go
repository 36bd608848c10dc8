package hook

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"countersign/agent/jsonobject"
)

// FolderArgument is the name of the argument with the working folder. An approval covers exactly the bytes of the
// arguments, so an approval is valid only in this folder. Rules and previews of the policy can read the argument.
const FolderArgument = "working_folder"

var (
	errNotJSON       = errors.New("the agent's input is not the expected JSON")
	errFolderChanged = errors.New("an approver changed the working folder, and the agent can't run the tool in another one")
)

// decode reads an agent's input. The case of the input's names makes no difference, as in package json.
func decode(raw []byte, into any) error {
	list, err := split(raw)
	if err != nil || json.Unmarshal(raw, into) != nil {
		return errNotJSON
	}
	fold := func(name string) string { return strings.ToLower(strings.ToUpper(name)) }
	if name, ok := duplicate(list, fold); ok {
		return fmt.Errorf("the agent's input has %q twice", name)
	}
	return nil
}

// members returns the arguments of a call.
func members(raw []byte) (jsonobject.Object, error) {
	list, err := split(raw)
	if err != nil {
		return nil, errors.New("the arguments are not a JSON object")
	}
	if name, ok := duplicate(list, func(name string) string { return name }); ok {
		return nil, fmt.Errorf("the arguments have %q twice", name)
	}
	return list, nil
}

// duplicate returns a name that occurs twice. Duplicate names are refused, because JSON parsers differ in which of the
// values they use. Names are the same if fold returns the same text for them.
func duplicate(list jsonobject.Object, fold func(string) string) (string, bool) {
	seen := map[string]bool{}
	for _, m := range list {
		if seen[fold(m.Name)] {
			return m.Name, true
		}
		seen[fold(m.Name)] = true
	}
	return "", false
}

// split returns the members of a JSON object. Like package json, split accepts invalid UTF-8.
func split(raw []byte) (jsonobject.Object, error) {
	list, err := jsonobject.Read(raw, jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true))
	if err != nil {
		return nil, errNotJSON
	}
	return list, nil
}

// withFolder adds the working folder to a call's arguments. The other arguments stay unchanged.
func withFolder(input json.RawMessage, folder string) (json.RawMessage, error) {
	list, err := members(input)
	if err != nil {
		return nil, err
	}
	if list.Has(FolderArgument) {
		return nil, fmt.Errorf("the tool has an argument %s of its own, which would be taken for the working folder", FolderArgument)
	}
	input = bytes.TrimSpace(input)
	out := append([]byte(nil), input[:len(input)-1]...)
	if len(list) > 0 {
		out = append(bytes.TrimRight(out, " \t\r\n"), ',')
	}
	out = append(out, `"`+FolderArgument+`":`...)
	out = append(out, bytes.TrimSpace(encode(folder))...)
	return append(out, '}'), nil
}

// withoutFolder removes the working folder from edited arguments. If an approver has changed the folder,
// withoutFolder returns an error, because the agent can run the tool only in the agent's current folder.
func withoutFolder(args json.RawMessage, folder string) (json.RawMessage, error) {
	list, err := members(args)
	if err != nil {
		return nil, err
	}
	var is string
	if json.Unmarshal(list.Get(FolderArgument), &is) != nil || is != folder {
		return nil, errFolderChanged
	}
	return list.Without(FolderArgument).Bytes(), nil
}

// removed returns the name of an argument that is in the old arguments and not in the changed arguments.
func removed(old, changed json.RawMessage) (string, bool) {
	was, err := members(old)
	if err != nil {
		return "", false
	}
	is, _ := members(changed)
	for _, m := range was {
		if !is.Has(m.Name) {
			return m.Name, true
		}
	}
	return "", false
}
