package bolt

// scratch is memory for the rows of one transaction. bbolt keeps a row's value until the commit and copies it then, so that one
// scratch serves all transactions of the writer, and the garbage collector has nothing to do with rows.
type scratch struct {
	block []byte
}

// maxScratch bounds what is kept from one transaction to the next.
const maxScratch = 4 << 20

// space is an empty slice to append to, with some room. What is appended must be given to done before the next call.
func (s *scratch) space(room int) []byte {
	if cap(s.block)-len(s.block) < room {
		s.block = make([]byte, 0, max(room, min(2*cap(s.block), maxScratch), 64<<10)) // the old block lives as long as its rows
	}
	return s.block[len(s.block):]
}

// done gives out what was appended to space, so that nothing more is written over it.
func (s *scratch) done(b []byte) []byte {
	if n := len(s.block) + len(b); n <= cap(s.block) && len(b) > 0 && &b[0] == &s.block[:n][len(s.block)] {
		s.block = s.block[:n]
	}
	return b[:len(b):len(b)]
}

// reset makes the memory free for the next transaction.
func (s *scratch) reset() {
	s.block = s.block[:0]
	if cap(s.block) > maxScratch {
		s.block = nil
	}
}
