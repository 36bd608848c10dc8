package control

import (
	"encoding/binary"
	"encoding/json"
	"fmt"
	"io"
)

// A frame consists of one byte for its kind, four bytes for the length of its content, and the content.
const (
	frameOutput  = 'o' // a piece of the task's output
	frameOutcome = 'e' // a Failure as JSON; empty: success. The last frame
)

// maxFrame is the maximum size of a frame's content.
const maxFrame = 1 << 20

func writeFrame(w io.Writer, kind byte, body []byte) error {
	head := binary.BigEndian.AppendUint32([]byte{kind}, uint32(len(body)))
	if _, err := w.Write(head); err != nil {
		return err
	}
	_, err := w.Write(body)
	return err
}

// framed is a writer that turns output into frames.
type framed struct{ w io.Writer }

func (f framed) Write(p []byte) (n int, err error) {
	for len(p) > 0 {
		piece := p[:min(len(p), maxFrame)]
		if err := writeFrame(f.w, frameOutput, piece); err != nil {
			return n, err
		}
		n, p = n+len(piece), p[len(piece):]
	}
	return n, nil
}

// outcome writes the frame that says how the task ended.
func outcome(w io.Writer, f *Failure) error {
	if f == nil {
		return writeFrame(w, frameOutcome, nil)
	}
	if len(f.Text) > maxFrame/8 { // JSON needs up to six bytes for each byte of text
		f = &Failure{f.Code, f.Text[:maxFrame/8] + "…"}
	}
	body, err := json.Marshal(f)
	if err != nil {
		return err
	}
	return writeFrame(w, frameOutcome, body)
}

// follow copies the output from a sequence of frames and returns the outcome.
func follow(r io.Reader, out io.Writer) error {
	var head [5]byte
	for {
		if _, err := io.ReadFull(r, head[:]); err != nil {
			return fmt.Errorf("%w (%w)", ErrLost, err)
		}
		size := binary.BigEndian.Uint32(head[1:])
		if size > maxFrame {
			return fmt.Errorf("%w: a frame of %d bytes", ErrForeign, size)
		}
		body := make([]byte, size)
		if _, err := io.ReadFull(r, body); err != nil {
			return fmt.Errorf("%w (%w)", ErrLost, err)
		}
		switch {
		case head[0] == frameOutput:
			if _, err := out.Write(body); err != nil {
				return fmt.Errorf("%w: %w", ErrOutput, err)
			}
		case head[0] == frameOutcome && size == 0:
			return nil
		case head[0] == frameOutcome:
			f := new(Failure)
			if err := json.Unmarshal(body, f); err != nil {
				return fmt.Errorf("%w: %w", ErrForeign, err)
			}
			return f
		default:
			return fmt.Errorf("%w: a frame of kind %q", ErrForeign, head[0])
		}
	}
}
