package bolt

import "countersign/store"

var settingTable = &table[store.Setting]{
	in: settings, name: "setting",
	id: func(s *store.Setting) (string, *uint64) { return s.Key, &s.Version },
}

func (t reader) Setting(key string) (store.Setting, error) { return settingTable.read(t.rows, key) }

func (t *tx) PutSetting(s store.Setting) error { return settingTable.write(t.rows, s) }
