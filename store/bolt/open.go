package bolt

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strconv"
	"syscall"
	"time"

	"go.etcd.io/bbolt"
	berrors "go.etcd.io/bbolt/errors"

	"countersign/store"
)

// schema is the version of the file's layout that this package reads and writes. Older ones are upgraded.
const schema = 5

// The bucket and key that name the layout.
var (
	rootBucket = []byte("countersign")
	schemaKey  = []byte("schema")
)

// Options are for tests. The zero value is right for everything else.
type Options struct {
	// OpenFile opens files in place of os.OpenFile, so that a test can stand between the store and the disk.
	OpenFile func(name string, flag int, mode os.FileMode) (*os.File, error)
	// Rehearse runs every closure of Update twice, and takes back the first run's writes: closures may run more than once.
	Rehearse bool
}

// The file is mapped for this much from the start, and grown by the other in one step. Mapping costs address space only, and mapping
// anew would wait for every view.
const (
	initialMap = 1 << 30
	growBy     = 1 << 20
)

// smallest is the least that bbolt writes into a new file: four pages of 4 KiB.
const smallest = 16 << 10

// Open opens the store in a file, which is made, readable for its owner only, if it is not there. A store that an older version of
// the program wrote is upgraded first, which that version then does not open any more.
func Open(path string, opts Options) (*Store, error) {
	if opts.OpenFile == nil {
		opts.OpenFile = os.OpenFile
	}
	info, err := os.Stat(path)
	if errors.Is(err, fs.ErrNotExist) {
		err = create(path, opts)
		if err == nil {
			info, err = os.Stat(path)
		}
	}
	switch {
	case err != nil:
		return nil, sentence(path, err)
	case info.IsDir():
		return nil, fmt.Errorf("store: %s is a directory: name a file in it", path)
	case !info.Mode().IsRegular():
		return nil, fmt.Errorf("%w: %s is not a regular file", store.ErrForeign, path)
	case info.Size() == 0:
		return nil, fmt.Errorf("%w: %s is empty, which a store never is. Remove it to start with nothing, or put a backup in its place", store.ErrForeign, path)
	case info.Size() < smallest:
		return nil, fmt.Errorf("%w: %s is another kind of file, or was cut off: it has %d bytes. Name another file, or put a backup in its place", store.ErrForeign, path, info.Size())
	}
	db, err := open(path, opts)
	if err != nil {
		return nil, sentence(path, err)
	}
	db.NoFreelistSync = false // see open
	db.AllocSize = growBy
	if err := Guard(func() error { return upgraded(db) }); err != nil {
		return nil, sentence(path, errors.Join(err, db.Close()))
	}
	return newStore(db, opts.Rehearse), nil
}

// open opens a file that exists, and leaves it as it is: bbolt would otherwise write a list of free pages
// into a foreign file that has none.
func open(path string, opts Options) (db *bbolt.DB, err error) {
	var file *os.File
	defer func() {
		if err != nil && file != nil {
			file.Close() // bbolt has, unless it panicked
		}
	}()
	err = Guard(func() (err error) {
		db, err = bbolt.Open(path, 0o600, &bbolt.Options{
			Timeout:         time.Nanosecond, // one try
			FreelistType:    bbolt.FreelistMapType,
			NoFreelistSync:  true,
			NoStatistics:    true,
			InitialMmapSize: initialMap,
			OpenFile: func(name string, flag int, mode os.FileMode) (*os.File, error) {
				if file != nil {
					return opts.OpenFile(name, flag, mode) // a copy
				}
				var err error
				file, err = opts.OpenFile(name, flag&^os.O_CREATE, mode)
				return file, err
			},
		})
		if err != nil {
			return err
		}
		if err = verify(db, path, file); err != nil {
			return errors.Join(err, db.Close())
		}
		return nil
	})
	return db, err
}

// verify looks at who wrote the file, and whether it is whole.
func verify(db *bbolt.DB, path string, file *os.File) error {
	info, err := file.Stat()
	if err != nil {
		return err
	}
	if now, err := os.Stat(path); err != nil || !os.SameFile(now, info) {
		return fmt.Errorf("%w: another store was put at %s while this one was opened. Try again", store.ErrLocked, path)
	}
	return db.View(func(tx *bbolt.Tx) error {
		if tx.Size() > info.Size() {
			return fmt.Errorf("%w: %s was cut off: it has %d bytes of at least %d. Put a backup in its place", store.ErrForeign, path, info.Size(), tx.Size())
		}
		root := tx.Bucket(rootBucket)
		if root == nil {
			return fmt.Errorf("%w: %s belongs to another program. Name another file", store.ErrForeign, path)
		}
		version, err := strconv.Atoi(string(root.Get(schemaKey)))
		switch {
		case err != nil || version < 1:
			return fmt.Errorf("%w: %s does not say its version", store.ErrForeign, path)
		case version > schema:
			return fmt.Errorf("%w: %s has version %d, and this program reads versions up to %d. Start the newer program again, or put a backup from before the upgrade in its place",
				store.ErrNewer, path, version, schema)
		}
		for _, name := range bucketsOf(version) {
			if tx.Bucket([]byte(name)) == nil {
				return fmt.Errorf("%w: %s is damaged: it has no bucket %s. Put a backup in its place", store.ErrForeign, path, name)
			}
		}
		return nil
	})
}

// sentence says what is wrong with a file and what to do about it.
func sentence(path string, err error) error {
	for _, ours := range []error{store.ErrForeign, store.ErrNewer, store.ErrLocked} {
		if errors.Is(err, ours) {
			return err
		}
	}
	switch {
	case errors.Is(err, store.ErrDamaged):
		return fmt.Errorf("%w: %s: %w", store.ErrForeign, path, err)
	case errors.Is(err, berrors.ErrTimeout):
		return fmt.Errorf("%w: %s is held by %s. Stop it first, or name another file", store.ErrLocked, path, holder(path))
	case errors.Is(err, berrors.ErrInvalid), errors.Is(err, berrors.ErrVersionMismatch), errors.Is(err, berrors.ErrChecksum):
		return fmt.Errorf("%w: %s is another kind of file, or damaged (%w). Name another file, or put a backup in its place", store.ErrForeign, path, err)
	case errors.Is(err, fs.ErrPermission):
		return fmt.Errorf("store: %s can't be opened for reading and writing: give its owner, and the directory's, to the user that runs this program (%w)", path, err)
	case errors.Is(err, syscall.EROFS):
		return fmt.Errorf("store: %s is on a file system that is mounted read-only: name a file elsewhere (%w)", path, err)
	case errors.Is(err, syscall.ENOSPC):
		return fmt.Errorf("%w: %s can't be made, or brought to this version: free some space (%w)", store.ErrFull, path, err)
	case errors.Is(err, fs.ErrNotExist):
		return fmt.Errorf("store: the directory of %s, or what that links to, does not exist: make it first (%w)", path, err)
	case errors.Is(err, syscall.ENOTDIR):
		return fmt.Errorf("store: %s lies below something that is not a directory (%w)", path, err)
	}
	return fmt.Errorf("store: open %s: %w", path, err)
}
