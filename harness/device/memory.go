package device

import "exp/harness/config"

// Memory returns the bytes of memory of the device that a configuration selects, 0 if unknown.
func Memory(c *config.Run) int64 {
	choice, err := OfRun(c)
	switch {
	case err != nil:
		return 0
	case choice.GPU != nil:
		return choice.GPU.Memory
	}
	return HostMemory()
}
