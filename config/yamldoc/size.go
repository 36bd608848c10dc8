package yamldoc

import (
	"fmt"
	"regexp"
	"strconv"
)

var sizeText = regexp.MustCompile(`^([0-9]{1,9}) ?([KM]i?B)$`)

// Size reads a number of bytes within bounds, such as 256KB. A KB is 1024 bytes, and an MB is 1024 KB.
func (v Value) Size(least, most int) (int, bool) {
	hint := fmt.Sprintf("write a size from %s to %s", sizeName(least), sizeName(most))
	text, ok := v.Text("a size such as 256KB")
	if !ok {
		return 0, false
	}
	m := sizeText.FindStringSubmatch(text)
	if m == nil {
		v.Wrong(Quote(text)+" is not a size", hint+", with its unit: KB or MB")
		return 0, false
	}
	n, _ := strconv.Atoi(m[1])
	n <<= 10
	if m[2][0] == 'M' {
		n <<= 10
	}
	if n < least || n > most {
		v.Wrong(Quote(text)+" is not possible", hint)
		return 0, false
	}
	return n, true
}

func sizeName(n int) string {
	if n >= 1<<20 && n%(1<<20) == 0 {
		return strconv.Itoa(n>>20) + "MB"
	}
	return strconv.Itoa(n>>10) + "KB"
}

// fileTooLarge returns the message and the hint about a file of more than MaxFile bytes.
func fileTooLarge() (message, hint string) {
	return fmt.Sprintf("is larger than %d KiB", MaxFile>>10), "is this the right file?"
}

// MaxFile is the size of the largest file that is read, in bytes.
const MaxFile = 1 << 20
