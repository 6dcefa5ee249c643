//go:build !amd64

package cpu

// Only level Portable runs on other processors.
const emulatesAMX = false

func pairsAreTwoFMAs() bool { return false }

func tablesOf(Level) tables { return portableTables() }
