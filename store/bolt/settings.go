package bolt

import (
	"bytes"
	"fmt"

	"countersign/store"
	"countersign/store/record"
)

var settingTable = &table[store.Setting]{
	in: settings, name: "setting",
	id: func(s *store.Setting) (string, *uint64) { return s.Key, &s.Version },
}

func (t reader) Setting(key string) (store.Setting, error) { return settingTable.read(t.rows, key) }

func (t *tx) PutSetting(s store.Setting) error { return settingTable.write(t.rows, s) }

// The store keeps the policy in force in these settings, because a separate bucket would need a new version of the
// layout.
const (
	policyKey  = "policy_in_force"
	contentKey = "policy_content"
)

func (t reader) Policy() (p store.Policy, err error) {
	s, err := settingTable.read(t.rows, policyKey)
	if err != nil {
		return p, err
	}
	if err := record.Decode(s.Value, &p); err != nil {
		damaged := damagedRow(settings, []byte(policyKey), "it can't be decoded: "+err.Error())
		t.rows.note(damaged)
		return p, damaged
	}
	return p, nil
}

func (t reader) PolicyContent() ([]byte, error) {
	s, err := settingTable.read(t.rows, contentKey)
	return bytes.Clone(s.Value), err
}

func (t *tx) PutPolicy(p store.Policy, content []byte) error {
	if err := keyable("policy's load", p.Load); err != nil {
		return err
	}
	row := store.Setting{Key: policyKey, Version: p.Version}
	p.Version++
	var err error
	if row.Value, err = record.Append(nil, &p); err != nil {
		return fmt.Errorf("policy: %w", err)
	}
	if err := settingTable.write(t.rows, row); err != nil {
		return err
	}
	held, err := settingTable.read(t.rows, contentKey)
	if store.IgnoreNotFound(err) != nil {
		return err
	}
	held.Key, held.Value = contentKey, content
	return settingTable.write(t.rows, held)
}

func (t *tx) ExpectPolicy(load string) error {
	p, err := t.Policy()
	if store.IgnoreNotFound(err) != nil {
		return err
	}
	if err != nil || p.Load != load {
		return store.ErrPolicyChanged
	}
	return nil
}
