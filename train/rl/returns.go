package rl

// Returns sets ret[t] to the discounted sum of the row's rewards from token t on:
//
//	ret[t] = reward[t] + gamma·ret'
//
// ret' is the return of the row's next unmasked token, 0 after its last. As in GAE,
// masked-out tokens have no reward and no discount step; there ret is ret'. ret and reward
// are [N] and may be the same slice.
func Returns[T Float](ret, reward []T, mask []bool, rows Rows, gamma float64) {
	rows.check(len(mask))
	sameLen(len(mask), len(ret), len(reward))
	for i := range rows.Len() {
		var next float64
		for t := rows[i+1] - 1; t >= rows[i]; t-- {
			if mask[t] {
				next = float64(reward[t]) + float64(gamma*next)
			}
			ret[t] = T(next)
		}
	}
}
