//go:build !unix

package storebench

import "time"

// processTime is 0 where the system does not tell it simply.
func processTime() time.Duration { return 0 }
