package preview

import (
	"fmt"
	"regexp"
	"strings"

	"countersign/config/yamldoc"
)

var (
	plainNumber  = regexp.MustCompile(`^-?[0-9]{1,30}(\.[0-9]{1,30})?$`)
	currencyCode = regexp.MustCompile(`^[A-Za-z]{3}$`)
)

// symbols holds the signs of currencies whose sign is unambiguous. Any other dollar, peso or krona is written with its
// code.
var symbols = map[string]string{"USD": "$", "EUR": "€", "GBP": "£", "JPY": "¥", "INR": "₹", "KRW": "₩", "ILS": "₪", "UAH": "₴", "VND": "₫", "NGN": "₦"}

// decimals holds the number of decimal places for currencies whose smallest unit is not a hundredth (ISO 4217).
var decimals = map[string]int{
	"BIF": 0, "CLP": 0, "DJF": 0, "GNF": 0, "ISK": 0, "JPY": 0, "KMF": 0, "KRW": 0, "PYG": 0, "RWF": 0, "UGX": 0, "VND": 0, "VUV": 0, "XAF": 0, "XOF": 0, "XPF": 0,
	"BHD": 3, "IQD": 3, "JOD": 3, "KWD": 3, "LYD": 3, "OMR": 3, "TND": 3,
}

// money writes an amount with its currency: $49.99, €1,234.50, ¥500, 12.50 SEK. money adds zeros, but never rounds. For
// example, 49.999 stays 49.999, because the call would send exactly this amount.
func money(amount, currency any) (string, error) {
	n, err := numeral(amount)
	if err != nil {
		return "", err
	}
	code := fmt.Sprint(currency)
	if !currencyCode.MatchString(code) { // before ToUpper, which turns some other letters into A to Z
		return "", fmt.Errorf("%s is not a currency such as USD", describe(currency))
	}
	code = strings.ToUpper(code)
	places, ok := decimals[code]
	if !ok {
		places = 2
	}
	n = padded(n, places)
	sign := ""
	if strings.HasPrefix(n, "-") {
		sign, n = "-", n[1:]
	}
	if symbol, ok := symbols[code]; ok {
		return sign + symbol + yamldoc.GroupDigits(n), nil
	}
	return sign + yamldoc.GroupDigits(n) + " " + code, nil
}

// padded adds zeros until a number has the given number of decimal places.
func padded(n string, places int) string {
	_, fraction, hasPoint := strings.Cut(n, ".")
	missing := places - len(fraction)
	if missing <= 0 {
		return n
	}
	if !hasPoint {
		n += "."
	}
	return n + strings.Repeat("0", missing)
}
