package shop

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
)

// Amount is a sum of money in the smallest unit of its currency (cents). In JSON, an amount is a plain decimal number
// with two places, such as 49.90.
type Amount int64

// plainDecimal matches decimal numbers without an exponent, because 1e300 is a valid JSON number but not a price.
var plainDecimal = regexp.MustCompile(`^(-?)([0-9]{1,9})(?:\.([0-9]{1,20}))?$`)

// ParseAmount reads a decimal number with at most two decimal places, not counting zeros at the end.
func ParseAmount(text string) (Amount, error) {
	m := plainDecimal.FindStringSubmatch(text)
	if m == nil {
		return 0, fmt.Errorf("%q is not an amount: write a plain number such as 49.99", text)
	}
	places := strings.TrimRight(m[3], "0")
	if len(places) > 2 {
		return 0, fmt.Errorf("%s has more than two decimal places: write an amount such as 49.99", text)
	}
	units, err := strconv.ParseInt(m[2]+(places + "00")[:2], 10, 64)
	if err != nil {
		return 0, fmt.Errorf("%s is not an amount: %w", text, err)
	}
	if m[1] == "-" {
		units = -units
	}
	return Amount(units), nil
}

func (a Amount) String() string {
	sign, units := "", int64(a)
	if units < 0 {
		sign, units = "-", -units
	}
	return fmt.Sprintf("%s%d.%02d", sign, units/100, units%100)
}

// MarshalJSON writes the amount as a number.
func (a Amount) MarshalJSON() ([]byte, error) { return []byte(a.String()), nil }

// UnmarshalJSON reads a number. As in the schemas, a quoted number is an error.
func (a *Amount) UnmarshalJSON(data []byte) error {
	parsed, err := ParseAmount(string(data))
	if err != nil {
		return err
	}
	*a = parsed
	return nil
}

// In returns the amount with its currency as people write it: $49.99, €20.00.
func (a Amount) In(currency string) string {
	symbols := map[string]string{"USD": "$", "EUR": "€", "GBP": "£"}
	symbol, ok := symbols[currency]
	if !ok {
		return a.String() + " " + currency
	}
	if a < 0 {
		return "-" + symbol + (-a).String()
	}
	return symbol + a.String()
}

// percent returns p percent of the amount, with halves rounded up.
func (a Amount) percent(p int) Amount { return (a*Amount(p) + 50) / 100 }
