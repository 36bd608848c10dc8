package bolt

import "encoding/binary"

// scratch is memory for the rows of one transaction. bbolt copies the rows' values at the commit, and does not need
// scratch after the commit. So all transactions of the writer use the same scratch, which saves allocations.
type scratch struct {
	block []byte
}

// maxScratch limits the memory that is kept between transactions.
const maxScratch = 4 << 20

// space returns an empty slice to append to, with some capacity. The caller must pass the result to done before the
// next call of space.
func (s *scratch) space(room int) []byte {
	if cap(s.block)-len(s.block) < room {
		s.block = make([]byte, 0, max(room, min(2*cap(s.block), maxScratch), 64<<10)) // rows may still use the old block
	}
	return s.block[len(s.block):]
}

// done reserves the appended bytes, so later calls of space do not overwrite them.
func (s *scratch) done(b []byte) []byte {
	if n := len(s.block) + len(b); n <= cap(s.block) && len(b) > 0 && &b[0] == &s.block[:n][len(s.block)] {
		s.block = s.block[:n]
	}
	return b[:len(b):len(b)]
}

// extend appends the checksum to a value. If the value is the last slice that done has reserved, and the block has
// room, extend makes no copy.
func (s *scratch) extend(value []byte, sum uint32) []byte {
	n := len(s.block)
	if len(value) == 0 || len(value) > n || &value[0] != &s.block[n-len(value)] || n+checksumSize > cap(s.block) {
		return s.done(binary.BigEndian.AppendUint32(append(s.space(len(value)+checksumSize), value...), sum))
	}
	s.block = binary.BigEndian.AppendUint32(s.block, sum)
	return s.block[n-len(value) : n+checksumSize : n+checksumSize]
}

// reset releases the memory for the next transaction.
func (s *scratch) reset() {
	s.block = s.block[:0]
	if cap(s.block) > maxScratch {
		s.block = nil
	}
}
