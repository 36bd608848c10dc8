package agent

import (
	"encoding/json"
	"errors"
	"fmt"
	"math/big"
	"strconv"
	"strings"
)

// Decimal keeps a number exactly as it was written: 1.10 remains 1.10. Use Decimal for amounts of money. A Decimal is
// a JSON number. The zero Decimal is 0.
type Decimal struct{ text string }

// ParseDecimal parses a number in JSON notation. The number has at most 64 characters and lies within float64's
// range.
func ParseDecimal(text string) (Decimal, error) {
	if len(text) > 64 {
		return Decimal{}, errDigits
	}
	var n json.Number
	if text == "" || !strings.ContainsAny(text[:1], "-0123456789") || json.Unmarshal([]byte(text), &n) != nil || n.String() != text {
		return Decimal{}, errNoNumber
	}
	if f, err := strconv.ParseFloat(text, 64); err != nil || f == 0 && strings.ContainsAny(mantissa(text), "123456789") {
		return Decimal{}, errRange
	}
	return Decimal{text}, nil
}

// mantissa returns the part of a JSON number before the exponent.
func mantissa(number string) string {
	m, _, _ := strings.Cut(strings.ToLower(number), "e")
	return m
}

// String returns the number as it was written.
func (d Decimal) String() string {
	if d.text == "" {
		return "0"
	}
	return d.text
}

// Rat returns the number as a rational number, for calculations. The caller owns the returned number.
func (d Decimal) Rat() *big.Rat {
	r, _ := new(big.Rat).SetString(d.String()) // the text of a Decimal is always valid
	return r
}

// Units returns the number as a count of its smallest unit: 49.99 with 2 places is 4999 (cents). Units never rounds. If
// the number needs more decimal places, or the count is outside the range of an int64, Units returns an error.
func (d Decimal) Units(places int) (int64, error) {
	scale := new(big.Int).Exp(big.NewInt(10), big.NewInt(int64(max(places, 0))), nil)
	r := d.Rat()
	r.Mul(r, new(big.Rat).SetInt(scale))
	switch {
	case !r.IsInt():
		return 0, fmt.Errorf("%s has more than %d digits after the point", d, max(places, 0))
	case !r.Num().IsInt64():
		return 0, errors.New("the number " + errRange.Error())
	}
	return r.Num().Int64(), nil
}

// MarshalJSON writes the number as it was read.
func (d Decimal) MarshalJSON() ([]byte, error) { return []byte(d.String()), nil }

// UnmarshalJSON reads a number.
func (d *Decimal) UnmarshalJSON(raw []byte) (err error) {
	*d, err = ParseDecimal(string(raw))
	return err
}
