package bolt

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"go.etcd.io/bbolt"
	berrors "go.etcd.io/bbolt/errors"

	"countersign/store"
)

// Layout is the version of the file layout that this package reads and writes. Open upgrades older layouts.
const Layout = 10

const schema = Layout

// checksummed is the first version whose rows have checksums. An upgrade from this version, or from a later version,
// rewrites no rows.
const checksummed = 6

// The row with the key schemaKey in the bucket rootBucket has the version of the layout. The row with the key sumKey
// has the version with a checksum.
var (
	rootBucket = []byte("countersign")
	schemaKey  = []byte("schema")
	sumKey     = []byte("schema_sum")
)

// Options configure Open. The zero value is the normal configuration. OpenFile and Rehearse are for tests.
type Options struct {
	// AsIs does not repair a damaged file. Damage lists the faults. If a page is damaged, View returns an error.
	AsIs bool
	// ReadOnly opens a store for reading only. ReadOnly includes AsIs. Open does not upgrade the file, and returns an
	// error if the file must be upgraded before it can be read. Update returns an error.
	ReadOnly bool
	// OpenFile replaces os.OpenFile, so that a test can intercept disk access.
	OpenFile func(name string, flag int, mode os.FileMode) (*os.File, error)
	// Rehearse runs every closure of Update twice and undoes the first run. So a test can find a closure whose second
	// run has another result.
	Rehearse bool

	statistics bool // lets bbolt count the free pages
	incomplete bool // also opens an incomplete copy
}

// initialMap is the initial size of the file's memory mapping, and growBy is the step by which the file grows. A large
// mapping costs only address space. To enlarge the mapping, the store must wait for every view.
const (
	initialMap = 1 << 30
	growBy     = 1 << 20
)

// smallest is the minimum size of a new bbolt file: four pages of 4 KiB.
const smallest = 16 << 10

// Open opens the store in a file. If the file is missing, Open creates it, readable only by its owner. If an older
// version of the program wrote the store, Open first upgrades it. The older version can't open the upgraded store.
func Open(path string, opts Options) (*Store, error) {
	if opts.OpenFile == nil {
		opts.OpenFile = os.OpenFile
	}
	opts.AsIs = opts.AsIs || opts.ReadOnly
	if err := exists(path, opts); err != nil {
		return nil, err
	}
	db, file, torn, err := open(path, opts)
	if err != nil {
		return nil, sentence(path, err)
	}
	var found looked
	err = Guard(func() (err error) {
		found, err = look(db, file, path, torn, opts)
		return err
	})
	if err == nil && found.kept != "" { // look has put a new file at the path
		if err = db.Close(); err == nil {
			db, file, _, err = open(path, opts)
		}
		if err != nil {
			return nil, sentence(path, err)
		}
		found.damage = append([]store.Damage{{Bucket: "file", Why: "the store was rebuilt from its readable rows; the damaged file is " + found.kept, Mended: true}}, found.damage...)
	}
	if err != nil {
		return nil, sentence(path, errors.Join(err, db.Close()))
	}
	db.NoFreelistSync = false // see open
	db.AllocSize = growBy
	prepare := upgraded
	if opts.ReadOnly {
		prepare = legible
	}
	if err := Guard(func() error { return prepare(db) }); err != nil {
		return nil, sentence(path, errors.Join(err, db.Close()))
	}
	if err := db.Sync(); err != nil { // makes writes durable that a killed process has left in the file
		return nil, sentence(path, errors.Join(err, db.Close()))
	}
	id, err := identify(db, path)
	if err == nil && !sameAs(file, id.opened) {
		err = errors.Join(replacedMeanwhile(path), id.close())
	}
	if err != nil {
		return nil, sentence(path, errors.Join(err, db.Close()))
	}
	s := newStore(db, file, id, opts.Rehearse)
	s.readOnly, s.torn = opts.ReadOnly, found.torn
	for _, x := range found.damage {
		s.damage.Found(x)
	}
	return s, nil
}

// exists creates the file of a store if it is missing. exists returns an error if the file can't be a store.
func exists(path string, opts Options) error {
	info, err := os.Stat(path)
	if errors.Is(err, fs.ErrNotExist) && !opts.ReadOnly {
		if to := target(path); to != path { // probably, the disk of the file is not mounted
			return fmt.Errorf("store: %s is a symbolic link to %s, which does not exist: mount its disk, or put the store there. For a new store, name the file itself, or remove the link (%w)", path, to, err)
		}
		err = create(path, opts)
		if err == nil {
			info, err = os.Stat(path)
		}
	}
	switch {
	case err != nil:
		return sentence(path, err)
	case info.IsDir():
		return fmt.Errorf("store: %s is a directory: name a file in it", path)
	case !info.Mode().IsRegular():
		return fmt.Errorf("%w: %s is not a regular file", store.ErrForeign, path)
	case info.Size() == 0:
		return fmt.Errorf("%w: %s is empty, and a store is never empty. Remove it to start with nothing, or put a backup in its place", store.ErrForeign, path)
	case info.Size() < smallest:
		return fmt.Errorf("%w: %s is another kind of file, or was cut off: it has %d bytes. Name another file, or put a backup in its place", store.ErrForeign, path, info.Size())
	}
	return nil
}

// target returns the path of the file that a symbolic link names, also if there is no such file. So a new file replaces
// the file, and not the link. If the path is not a link, target returns the path.
func target(path string) string {
	for range mostLinks {
		to, err := os.Readlink(path)
		if err != nil {
			break
		}
		if !filepath.IsAbs(to) {
			dir, _ := filepath.Split(path)
			to = dir + to // not cleaned: the directory may also be a symbolic link
		}
		path = to
	}
	return path
}

// mostLinks is the number of symbolic links that Linux follows.
const mostLinks = 40

// sameAs reports whether info describes the open file.
func sameAs(file *os.File, info fs.FileInfo) bool {
	own, err := file.Stat()
	return err == nil && os.SameFile(own, info)
}

func replacedMeanwhile(path string) error {
	return fmt.Errorf("%w: another store was put at %s while this one was opened. Try again", store.ErrLocked, path)
}

// open opens an existing file without changing the file. By default, bbolt writes a list of free pages into a file that
// has none, even if the file belongs to another program. NoFreelistSync prevents this. The result torn reports whether
// pages are damaged: see outline.
func open(path string, opts Options) (db *bbolt.DB, file *os.File, torn bool, err error) {
	defer func() {
		if err != nil && file != nil {
			unlock(file) // needed if bbolt panicked; if bbolt returned, it has already unlocked and closed the file
			file.Close()
		}
	}()
	err = Guard(func() (err error) {
		db, err = bbolt.Open(path, 0o600, &bbolt.Options{
			Timeout:         time.Nanosecond, // a single attempt
			FreelistType:    bbolt.FreelistMapType,
			NoFreelistSync:  true,
			NoStatistics:    !opts.statistics,
			InitialMmapSize: initialMap,
			OpenFile: func(name string, flag int, mode os.FileMode) (*os.File, error) {
				if file != nil {
					return opts.OpenFile(name, flag, mode) // bbolt opens the file once more to copy the store
				}
				var err error
				if file, err = opts.OpenFile(name, flag&^os.O_CREATE, mode); err != nil {
					return nil, err
				}
				if err = lock(file); err == nil {
					torn, err = outline(path, file)
				}
				return file, err
			},
		})
		if err != nil {
			return err
		}
		if err = verify(db, path, file, opts.incomplete); err != nil {
			return errors.Join(err, db.Close())
		}
		return nil
	})
	return db, file, torn, err
}

func shorter(path string, size, least int64) error {
	return fmt.Errorf("%w: %s was cut off: it has %d bytes of at least %d. Put a backup in its place", store.ErrForeign, path, size, least)
}

// verify checks that this version of the program can read the file at the path. verify also checks that the file has all
// buckets, and is not an incomplete copy.
func verify(db *bbolt.DB, path string, file *os.File, incomplete bool) error {
	info, err := file.Stat()
	if err != nil {
		return err
	}
	if now, err := os.Stat(path); err != nil || !os.SameFile(now, info) {
		return replacedMeanwhile(path)
	}
	return db.View(func(tx *bbolt.Tx) error {
		root := tx.Bucket(rootBucket)
		version, err := strconv.Atoi(string(root.Get(schemaKey)))
		sum := root.Get(sumKey)
		switch {
		case err != nil || version < 1:
			return fmt.Errorf("%w: %s does not say its version", store.ErrForeign, path)
		case version > schema:
			return fmt.Errorf("%w: %s has version %d, and this program reads versions up to %d. Start the newer program again, or put a backup from before the upgrade in its place",
				store.ErrNewer, path, version, schema)
		case (sum != nil || version == schema && root.Get(upgradingKey) == nil) && !bytes.Equal(sum, schemaSum(version)):
			return fmt.Errorf("%w: %s is damaged: its version is not the one that was written. Put a backup in its place", store.ErrForeign, path)
		}
		if !incomplete && root.Get(copyingKey) != nil {
			return fmt.Errorf("%w: the command that wrote %s was interrupted. Run it again, and it continues", store.ErrIncomplete, path)
		}
		for _, name := range bucketsOf(version) {
			if tx.Bucket([]byte(name)) == nil {
				return fmt.Errorf("%w: %s is damaged: it has no bucket %s. Put a backup in its place", store.ErrForeign, path, name)
			}
		}
		return nil
	})
}

// sentence returns an error that names the fault of a file and the remedy.
func sentence(path string, err error) error {
	for _, ours := range []error{store.ErrForeign, store.ErrNewer, store.ErrLocked, store.ErrIncomplete, errOlder} {
		if errors.Is(err, ours) {
			return err
		}
	}
	err = within{err}
	switch {
	case errors.Is(err, store.ErrDamaged):
		return fmt.Errorf("%w: %s: %w", store.ErrForeign, path, err)
	case errors.Is(err, berrors.ErrTimeout):
		return fmt.Errorf("%w: %s is held by %s. Stop it first, or name another file", store.ErrLocked, path, holder(path))
	case errors.Is(err, berrors.ErrInvalid), errors.Is(err, berrors.ErrVersionMismatch), errors.Is(err, berrors.ErrChecksum):
		return fmt.Errorf("%w: %s is another kind of file, or damaged (%w). Name another file, or put a backup in its place", store.ErrForeign, path, err)
	case errors.Is(err, fs.ErrPermission):
		return fmt.Errorf("store: %s can't be opened for reading and writing: make the user that runs this program the owner of the file and its directory (%w)", path, err)
	case errors.Is(err, syscall.EROFS):
		return fmt.Errorf("store: %s is on a file system that is mounted read-only: name a file elsewhere (%w)", path, err)
	case errors.Is(err, syscall.ENOSPC):
		return fmt.Errorf("%w: %s can't be created or upgraded: free some space (%w)", store.ErrFull, path, err)
	case errors.Is(err, fs.ErrNotExist):
		return fmt.Errorf("store: the directory of %s does not exist: create it first (%w)", path, err)
	case errors.Is(err, syscall.ENOTDIR):
		return fmt.Errorf("store: %s lies below something that is not a directory (%w)", path, err)
	}
	return fmt.Errorf("store: open %s: %w. Look at the system's log (dmesg): if the disk fails, put a backup on another one", path, err)
}

// within wraps an error for use inside another error of this package. within removes the prefix "store: " from the
// text, because the text of the outer error already has this prefix.
type within struct{ error }

func (w within) Error() string { return strings.TrimPrefix(w.error.Error(), "store: ") }

func (w within) Unwrap() error { return w.error }
