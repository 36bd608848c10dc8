package shop

import "time"

// seed returns a new shop. The dates of its orders are relative to the given time.
func seed(now time.Time) State {
	days := func(n int) time.Time { return now.AddDate(0, 0, n).Truncate(time.Minute) }
	card := func(brand, last4 string, months int) Card {
		return Card{Brand: brand, Last4: last4, Expires: now.AddDate(0, months, 0).Truncate(24 * time.Hour)}
	}
	state := State{
		Format: format,
		Customers: []Customer{
			{ID: "USR-456", Name: "Jane Doe", Email: "jane@example.com", Phone: "+1 555 0100",
				Language: "en", Address: "742 Evergreen Terrace, Springfield", Status: Active, Since: days(-1100), Card: card("Visa", "4242", 20)},
			{ID: "USR-457", Name: "Bob Miller", Email: "bob@example.com", Phone: "+1 555 0111",
				Language: "en", Address: "9 Harbor Road, Portland", Status: Active, Since: days(-410), Card: card("Mastercard", "4444", 7)},
			{ID: "USR-458", Name: "Amélie Laurent", Email: "amelie@example.org", Phone: "+33 1 99 00 12 34",
				Language: "fr", Address: "3 rue des Lilas, 69003 Lyon", Status: Active, Since: days(-95), Card: card("Visa", "1881", 31)},
			// The customer's card has expired, so a payment with this card fails.
			{ID: "USR-459", Name: "Carlos Ruiz", Email: "carlos@example.net", Phone: "+1 555 0144",
				Language: "es", Address: "58 Mission Street, San Antonio", Status: Active, Since: days(-700), Card: card("Visa", "0077", -2)},
			{ID: "USR-460", Name: "Priya Shah", Email: "priya@example.com", Phone: "+44 20 7946 0321",
				Language: "en", Address: "14 Canal Walk, Leeds", Status: Deactivated, Since: days(-1500), Card: card("Amex", "0005", 14)},
			{ID: "USR-461", Name: "Tom Becker", Email: "tom@example.net", Phone: "+49 30 901820",
				Language: "de", Address: "Lindenweg 7, 10115 Berlin", Status: Active, Since: days(-33), Card: card("Mastercard", "5100", 25)},
			{ID: "USR-462", Name: "Northwind Office Ltd", Email: "orders@northwind.example", Phone: "+1 555 0177",
				Language: "en", Address: "200 Commerce Park, Denver", Status: Active, Since: days(-860), Card: card("Visa", "9009", 11)},
		},
		Orders: []Order{
			{ID: "ORD-123", Customer: "USR-456", Progress: Arrived, PlacedAt: days(-6), Delivered: days(-1), Currency: "USD", Items: []Item{{"Glass teapot", 1, 4999}}},
			{ID: "ORD-124", Customer: "USR-457", Progress: Shipped, PlacedAt: days(-4), Tracking: "DX 4471 0982", Currency: "USD",
				Items: []Item{{"Desk lamp", 1, 6450}, {"Light bulb E27", 2, 425}}},
			{ID: "ORD-125", Customer: "USR-458", Progress: Arrived, PlacedAt: days(-20), Delivered: days(-15), Currency: "EUR",
				Items: []Item{{"Linen tablecloth", 1, 7900}}, Refunded: 2000},
			{ID: "ORD-126", Customer: "USR-459", Progress: Processing, PlacedAt: days(-2), Currency: "USD", Items: []Item{{"Cast iron pan", 1, 5900}}},
			{ID: "ORD-127", Customer: "USR-460", Progress: Arrived, PlacedAt: days(-200), Delivered: days(-196), Currency: "GBP", Items: []Item{{"Rain jacket", 1, 12000}}, Refunded: 12000},
			{ID: "ORD-128", Customer: "USR-461", Progress: Processing, PlacedAt: days(-1), Currency: "EUR", Items: []Item{{"Coffee grinder", 1, 8950}}},
			{ID: "ORD-129", Customer: "USR-462", Progress: Arrived, PlacedAt: days(-12), Delivered: days(-8), Currency: "USD", Items: []Item{{"Standing desk", 2, 44950}}},
			{ID: "ORD-130", Customer: "USR-457", Progress: CalledOff, PlacedAt: days(-50), Currency: "USD", Items: []Item{{"Wall clock", 1, 3200}}},
			{ID: "ORD-131", Customer: "USR-456", Progress: Shipped, PlacedAt: days(-3), Tracking: "DX 4471 1175", Currency: "USD", Items: []Item{{"Wireless headphones", 1, 12900}}},
			{ID: "ORD-132", Customer: "USR-462", Progress: Processing, PlacedAt: days(-1), Currency: "USD", Items: []Item{{"Office chair", 4, 21000}}},
			{ID: "ORD-133", Customer: "USR-456", Progress: Processing, PlacedAt: days(-1), Currency: "USD", Items: []Item{{"Tea sampler", 2, 1200}}},
			{ID: "ORD-134", Customer: "USR-461", Progress: Arrived, PlacedAt: days(-25), Delivered: days(-21), Currency: "EUR", Items: []Item{{"Espresso cups, set of six", 1, 3490}}},
		},
		Runs: map[string]Run{},
	}
	// The orders in unpaid were bought on account or with a card that failed, so they are not paid.
	unpaid := map[string]bool{"ORD-126": true, "ORD-130": true, "ORD-132": true}
	for i := range state.Orders {
		o := &state.Orders[i]
		o.Address = state.customer(o.Customer).Address
		for _, item := range o.Items {
			o.Total += item.Price * Amount(item.Quantity)
		}
		if unpaid[o.ID] {
			continue
		}
		o.Paid = o.Total
		state.Payments = append(state.Payments, Payment{ID: number("PAY", len(state.Payments)+1), Order: o.ID, Amount: o.Total, Currency: o.Currency, Method: CardOnFile, At: o.PlacedAt})
		if o.Refunded > 0 {
			state.Refunds = append(state.Refunds, Refund{
				ID: number("RFD", len(state.Refunds)+1), Order: o.ID, Amount: o.Refunded, Currency: o.Currency,
				Reason: "Settled before the demo began", At: o.Delivered.AddDate(0, 0, 3),
			})
		}
	}
	return state
}
