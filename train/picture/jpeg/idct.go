package jpeg

// Constants of the inverse DCT: round(c·2¹³). C. Loeffler, A. Ligtenberg, G. Moschytz, "Practical Fast 1-D DCT
// Algorithms with 11 Multiplications", ICASSP 1989.
const (
	fix0_298631336 = 2446
	fix0_390180644 = 3196
	fix0_541196100 = 4433
	fix0_765366865 = 6270
	fix0_899976223 = 7373
	fix1_175875602 = 9633
	fix1_501321110 = 12299
	fix1_847759065 = 15137
	fix1_961570560 = 16069
	fix2_053119869 = 16819
	fix2_562915447 = 20995
	fix3_072711026 = 25172
)

// idct sets out [8][8] (rows are stride apart) to the samples of coefs·quant, both [64] in natural order: libjpeg's
// accurate integer transform, columns first, with 13 bits of the constants and 2 more bits between the passes. Samples
// out of range are clamped.
func idct(out []uint8, stride int, coefs []int16, quant *[64]uint16) {
	var ws [64]int32
	for i := range 8 {
		var x [8]int32
		for j := range 8 {
			x[j] = int32(coefs[8*j+i]) * int32(quant[8*j+i])
		}
		x = idct1(x)
		for j := range 8 {
			ws[8*j+i] = (x[j] + 1<<10) >> 11
		}
	}
	for i := range 8 {
		x := idct1([8]int32(ws[8*i:]))
		row := out[i*stride:][:8]
		for j := range 8 {
			row[j] = clamp((x[j]+1<<17)>>18 + 128)
		}
	}
}

// idct1 returns the inverse transform of eight coefficients, times 8^(1/2)·2¹³.
func idct1(x [8]int32) [8]int32 {
	z1 := (x[2] + x[6]) * fix0_541196100
	e2, e3 := z1-x[6]*fix1_847759065, z1+x[2]*fix0_765366865
	e0, e1 := (x[0]+x[4])<<13, (x[0]-x[4])<<13
	t10, t13, t11, t12 := e0+e3, e0-e3, e1+e2, e1-e2

	z5 := (x[7] + x[3] + x[5] + x[1]) * fix1_175875602
	a1 := -(x[7] + x[1]) * fix0_899976223
	a2 := -(x[5] + x[3]) * fix2_562915447
	a3 := -(x[7]+x[3])*fix1_961570560 + z5
	a4 := -(x[5]+x[1])*fix0_390180644 + z5
	o0 := x[7]*fix0_298631336 + a1 + a3
	o1 := x[5]*fix2_053119869 + a2 + a4
	o2 := x[3]*fix3_072711026 + a2 + a3
	o3 := x[1]*fix1_501321110 + a1 + a4
	return [8]int32{t10 + o3, t11 + o2, t12 + o1, t13 + o0, t13 - o0, t12 - o1, t11 - o2, t10 - o3}
}

func clamp(v int32) uint8 {
	switch {
	case v < 0:
		return 0
	case v > 255:
		return 255
	}
	return uint8(v)
}
