package wording

import (
	"math/big"
	"strings"
)

// Currencies maps currency signs to their units.
var Currencies = map[string]string{"$": "dollar", "€": "euro", "£": "sterling", "¥": "yen", "₹": "rupee",
	"USD": "dollar", "EUR": "euro", "GBP": "sterling", "Rs": "rupee"}

// Temperature names the degrees that are not angles.
var Temperature = map[string]string{"c": "celsius", "f": "fahrenheit", "celsius": "celsius",
	"fahrenheit": "fahrenheit"}

// The base dimensions of units. Units without a fixed factor between them have different dimensions: months and
// days, dollars and euros.
const (
	lengthDim = iota
	timeDim
	massDim
	currentDim
	monthDim
	dollarDim
	euroDim
	sterlingDim
	yenDim
	rupeeDim
	celsiusDim
	fahrenheitDim
	kelvinDim
	dataDim
	moleDim
	dims
)

// Dimension holds the exponents of the base dimensions.
type Dimension [dims]int8

// Measure is a unit: a multiple of the product of base units.
type Measure struct {
	Dim    Dimension
	Factor *big.Rat
}

func (m Measure) times(n Measure, sign int8) Measure {
	out := Measure{m.Dim, new(big.Rat)}
	for i := range out.Dim {
		out.Dim[i] += sign * n.Dim[i]
	}
	if sign > 0 {
		out.Factor.Mul(m.Factor, n.Factor)
	} else {
		out.Factor.Quo(m.Factor, n.Factor)
	}
	return out
}

// power raises a unit to a small natural exponent.
func (m Measure) power(n int) Measure {
	out := Measure{Factor: big.NewRat(1, 1)}
	for range n {
		out = out.times(m, 1)
	}
	return out
}

// Units are the names, singular and in lower case, of units that convert. Letters that are in capitals where they
// stand for a unit are in capitals here too.
var Units = makeUnits()

func makeUnits() map[string]Measure {
	m := map[string]Measure{}
	base := func(i int) Measure {
		d := Dimension{}
		d[i] = 1
		return Measure{d, big.NewRat(1, 1)}
	}
	add := func(of Measure, num, den int64, names ...string) {
		for _, n := range names {
			m[n] = Measure{of.Dim, new(big.Rat).Mul(of.Factor, big.NewRat(num, den))}
		}
	}
	addLengths(add, base(lengthDim))
	add(base(timeDim), 1, 1, "s", "sec", "second")
	add(base(timeDim), 1, 1000, "ms", "millisecond")
	add(base(timeDim), 60, 1, "min", "minute")
	add(base(timeDim), 3600, 1, "h", "hr", "hour")
	add(base(timeDim), 86400, 1, "day")
	add(base(timeDim), 604800, 1, "week")
	add(base(monthDim), 1, 1, "month")
	add(base(monthDim), 12, 1, "year", "yr")
	add(base(monthDim), 120, 1, "decade")
	add(base(monthDim), 1200, 1, "century")
	add(base(massDim), 1, 1, "g", "gram", "gramme", "gm")
	add(base(massDim), 1, 1000, "mg", "milligram")
	add(base(massDim), 1000, 1, "kg", "kilogram", "kilo")
	add(base(massDim), 1_000_000, 1, "tonne")
	add(base(massDim), 45359237, 100_000, "lb", "pound")
	add(m["lb"], 1, 16, "oz", "ounce")
	add(m["lb"], 2000, 1, "ton")
	add(base(dollarDim), 1, 1, "dollar", "usd", "$", "buck")
	add(base(dollarDim), 1, 100, "cent", "¢", "penny")
	add(base(euroDim), 1, 1, "euro", "eur", "€")
	add(base(sterlingDim), 1, 1, "sterling", "£")
	add(base(yenDim), 1, 1, "yen", "¥")
	add(base(rupeeDim), 1, 1, "rupee", "₹")
	add(base(celsiusDim), 1, 1, "celsius")
	add(base(fahrenheitDim), 1, 1, "fahrenheit")
	add(base(kelvinDim), 1, 1, "kelvin", "K")
	add(base(dataDim), 1, 1, "bit")
	add(base(dataDim), 8, 1, "byte")
	add(base(moleDim), 1, 1, "mole", "mol")
	addDerived(add, m, base(currentDim))
	return m
}

func addLengths(add func(of Measure, num, den int64, names ...string), metre Measure) {
	add(metre, 1, 1, "m", "meter", "metre")
	add(metre, 1, 10, "dm", "decimeter", "decimetre")
	add(metre, 1, 100, "cm", "centimeter", "centimetre")
	add(metre, 1, 1000, "mm", "millimeter", "millimetre")
	add(metre, 1, 1_000_000, "μm", "µm", "micrometer", "micrometre", "micron")
	add(metre, 1, 1_000_000_000, "nm", "nanometer", "nanometre")
	add(metre, 1, 10_000_000_000, "Å", "angstrom", "ångström")
	add(metre, 1000, 1, "km", "kilometer", "kilometre")
	add(metre, 254, 10_000, "in", "inch", "inche")
	add(metre, 3048, 10_000, "ft", "foot", "feet")
	add(metre, 9144, 10_000, "yd", "yard")
	add(metre, 1_609_344, 1000, "mi", "mile")
	add(metre.power(2), 10_000, 1, "hectare")
	add(metre.power(2), 40_468_564_224, 10_000_000, "acre")
	add(metre.power(3), 1, 1000, "l", "L", "liter", "litre")
	add(metre.power(3), 1, 100_000, "cl", "centiliter", "centilitre")
	add(metre.power(3), 1, 1_000_000, "ml", "mL", "milliliter", "millilitre", "cc")
	const cubicInch = 16_387_064 // of 10^-12 m³
	add(metre.power(3), 231*cubicInch, 1_000_000_000_000, "gal", "gallon")
	add(metre.power(3), 231*cubicInch, 4_000_000_000_000, "qt", "quart")
	add(metre.power(3), 231*cubicInch, 8_000_000_000_000, "pt", "pint")
	add(metre.power(3), 231*cubicInch, 16_000_000_000_000, "cup")
	add(metre.power(3), 231*cubicInch, 256_000_000_000_000, "tbsp", "tablespoon")
	add(metre.power(3), 231*cubicInch, 768_000_000_000_000, "tsp", "teaspoon")
}

// addDerived adds units that are products of others.
func addDerived(add func(of Measure, num, den int64, names ...string), m map[string]Measure, ampere Measure) {
	speed := m["m"].times(m["s"], -1)
	add(speed, 1_609_344, 3600*1000, "mph")
	add(speed, 1000, 3600, "kph", "kmh")
	newton := m["kg"].times(speed, 1).times(m["s"], -1)
	joule := newton.times(m["m"], 1)
	watt := joule.times(m["s"], -1)
	add(newton, 1, 1, "newton", "N")
	add(joule, 1, 1, "joule", "J")
	add(joule, 1000, 1, "kilojoule", "kJ")
	add(joule, 1, 10_000_000, "erg")
	add(joule, 4184, 1000, "cal", "calorie")
	add(joule, 4184, 1, "kcal", "kilocalorie")
	add(newton, 1, 100_000, "dyne")
	add(watt, 1, 1, "watt", "W")
	add(watt, 1000, 1, "kilowatt", "kW")
	add(newton.times(m["m"].power(2), -1), 1, 1, "pascal", "Pa")
	add(Measure{Factor: big.NewRat(1, 1)}.times(m["s"], -1), 1, 1, "hertz", "Hz")
	add(ampere, 1, 1, "ampere", "amp", "A")
	add(ampere.times(m["s"], 1), 1, 1, "coulomb", "C")
	volt := watt.times(ampere, -1)
	add(volt, 1, 1, "volt", "V")
	add(volt, 1000, 1, "kilovolt", "kV")
	ohm := volt.times(ampere, -1)
	add(ohm, 1, 1, "ohm", "Ω")
	add(ohm, 1000, 1, "kiloohm", "kilohm", "kΩ")
	add(ohm, 1_000_000, 1, "megaohm", "megohm", "MΩ")
}

// unitNamed looks up one word.
func unitNamed(w string) (Measure, bool) {
	if m, ok := Units[w]; ok {
		return m, true
	}
	m, ok := Units[Singular(strings.ToLower(w))]
	return m, ok && (len(w) > 1 || w == strings.ToLower(w))
}

// Singular returns the singular of a word, judged by its ending.
func Singular(w string) string {
	switch {
	case len(w) > 4 && strings.HasSuffix(w, "ies"):
		return w[:len(w)-3] + "y"
	case len(w) > 2 && strings.HasSuffix(w, "s") && !strings.HasSuffix(w, "ss"):
		return w[:len(w)-1]
	}
	return w
}

// IsCounted reports whether a word is a counted noun, singular or plural.
func IsCounted(w string) bool {
	return nouns[Singular(w)] || w == "squares" || w == "cubes" || nouns[w+"e"] && strings.ContainsRune("sxzh",
		rune(w[len(w)-1])) ||
		strings.HasSuffix(w, "es") && nouns[strings.TrimSuffix(w, "es")]
}
