package bolt_test

import (
	"path/filepath"
	"testing"

	"countersign/store"
	"countersign/store/bolt"
	"countersign/store/storetest"
)

// fresh makes an opener of a new file.
func fresh(opts bolt.Options) func(t *testing.T) storetest.Opener {
	return func(t *testing.T) storetest.Opener {
		path := filepath.Join(t.TempDir(), "store.db")
		return func() (store.Store, error) { return bolt.Open(path, opts) }
	}
}

func TestConformance(t *testing.T) { storetest.Run(t, fresh(bolt.Options{})) }

// The conformance suite also passes if the store runs every closure twice. The store undoes the writes of the first run
// completely.
func TestConformanceRehearsed(t *testing.T) { storetest.Run(t, fresh(bolt.Options{Rehearse: true})) }
