package preview

import (
	"errors"
	"fmt"
	"math/big"
	"strings"

	"countersign/config/yamldoc"
)

// percent writes a percentage, or a part of a whole as a percentage: 15%, 12.5%, about 33.3%.
func percent(v any, of ...any) (string, error) {
	n, err := numeral(v)
	if err != nil || len(of) == 0 {
		return yamldoc.GroupDigits(n) + "%", err
	}
	if len(of) > 1 {
		return "", errors.New("it takes a number of percent, or a part and a whole")
	}
	whole, err := numeral(of[0])
	if err != nil {
		return "", err
	}
	part, ok := new(big.Rat).SetString(n)
	by, ok2 := new(big.Rat).SetString(whole)
	if !ok || !ok2 || by.Sign() == 0 {
		return "", fmt.Errorf("%s has no parts", describe(of[0]))
	}
	part.Mul(part.Quo(part, by), big.NewRat(100, 1))
	if places, exact := part.FloatPrec(); exact && places <= 2 {
		return yamldoc.GroupDigits(part.FloatString(places)) + "%", nil
	}
	return "about " + yamldoc.GroupDigits(part.FloatString(1)) + "%", nil
}

// amounts writes a list of numbers as money: $5.00, $7.50.
func amounts(v, currency any) (string, error) {
	items, ok := v.(list)
	if !ok {
		return "", fmt.Errorf("%s is not a list", describe(v))
	}
	parts := make([]string, len(items))
	for i, item := range items {
		var err error
		if parts[i], err = money(item, currency); err != nil {
			return "", err
		}
	}
	return strings.Join(parts, ", "), nil
}

// total adds up a list of numbers exactly, and writes the sum as money. If rest has the name of a field, total adds up
// this field of each object in the list.
func total(v any, rest ...any) (string, error) {
	items, ok := v.(list)
	switch {
	case !ok:
		return "", fmt.Errorf("%s is not a list", describe(v))
	case len(rest) == 0 || len(rest) > 2:
		return "", errors.New("it takes a list and a currency, or a list, a name and a currency")
	}
	sum := new(big.Rat)
	for _, item := range items {
		if len(rest) == 2 {
			name := fmt.Sprint(rest[0])
			o, _ := item.(object)
			if !hasArg(o, name) {
				return "", fmt.Errorf("%s has no %s", describe(item), describe(name))
			}
			item = o[name]
		}
		n, err := numeral(item)
		if err != nil {
			return "", err
		}
		r, ok := new(big.Rat).SetString(n)
		if !ok {
			return "", fmt.Errorf("%s is not a number", describe(item))
		}
		sum.Add(sum, r)
	}
	return money(exactly(sum), rest[len(rest)-1])
}
