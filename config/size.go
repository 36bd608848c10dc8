package config

import (
	"fmt"
	"regexp"
	"strconv"
)

var sizeText = regexp.MustCompile(`^([0-9]{1,9}) ?([KM]i?B)$`)

// size reads a number of bytes in bounds, such as 256KB. A KB is 1024 bytes, a MB 1024 KB.
func (v value) size(least, most int) (int, bool) {
	hint := fmt.Sprintf("write a size from %s to %s", sizeName(least), sizeName(most))
	text, ok := v.text("a size such as 256KB")
	if !ok {
		return 0, false
	}
	m := sizeText.FindStringSubmatch(text)
	if m == nil {
		v.wrong(quote(text)+" is not a size", hint+", with its unit: KB or MB")
		return 0, false
	}
	n, _ := strconv.Atoi(m[1])
	n <<= 10
	if m[2][0] == 'M' {
		n <<= 10
	}
	if n < least || n > most {
		v.wrong(quote(text)+" is not possible", hint)
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
