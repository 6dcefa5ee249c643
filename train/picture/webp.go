package picture

import (
	"bytes"
	"encoding/binary"
	"errors"
	"image"
	"io"

	"golang.org/x/image/webp"
)

func isWebP(data []byte) bool {
	return len(data) >= 12 && string(data[:4]) == "RIFF" && string(data[8:12]) == "WEBP"
}

func sizeWebP(data []byte) (width, height int, err error) {
	frame, err := stillWebP(data)
	if err != nil {
		return 0, 0, err
	}
	return sizeOf(webp.DecodeConfig(bytes.NewReader(frame)))
}

// decodeWebP decodes a still image. Package webp decodes the samples; colours are made as libwebp makes them, which
// interpolates colour differences and takes brightness to run from 16 to 235 (package image/color: from 0 to 255).
func decodeWebP(data []byte) (bitmap, error) {
	frame, err := stillWebP(data)
	if err != nil {
		return bitmap{}, err
	}
	m, err := webp.Decode(bytes.NewReader(frame))
	if err != nil {
		return bitmap{}, err
	}
	if m, ok := m.(*image.YCbCr); ok {
		return fromVP8(m), nil
	}
	return plain(m)
}

// stillWebP returns a file with the chunk of the frame alone: transparency is dropped, and package webp refuses some
// files that have it in a chunk of its own.
func stillWebP(data []byte) ([]byte, error) {
	for at := 12; len(data)-at >= 8; {
		n := int(binary.LittleEndian.Uint32(data[at+4:]))
		switch string(data[at : at+4]) {
		case "ANIM", "ANMF":
			return nil, errors.New("animations are not supported")
		case "VP8 ", "VP8L":
			if n > len(data)-at-8 {
				return nil, io.ErrUnexpectedEOF
			}
			frame := append([]byte("RIFF\x00\x00\x00\x00WEBP"), data[at:at+8+n]...)
			if n%2 == 1 {
				frame = append(frame, 0)
			}
			binary.LittleEndian.PutUint32(frame[4:], uint32(len(frame)-8))
			return frame, nil
		}
		if n > len(data)-at-8 {
			break
		}
		at += 8 + n + n%2
	}
	return nil, io.ErrUnexpectedEOF
}

// fromVP8 returns the colours of VP8's samples with 4:2:0 chroma. Chroma samples lie amid 2×2 pixels; a pixel takes 9,
// 3, 3 and 1 sixteenths of the four around it (libwebp's "fancy" upsampling, upsampling.c).
func fromVP8(m *image.YCbCr) bitmap {
	r := m.Bounds()
	out := newBitmap(r.Dx(), r.Dy())
	w, h := (out.width+1)/2, (out.height+1)/2
	for y := range out.height {
		near := y / 2
		far := min(max(near-1+y%2*2, 0), h-1)
		nearU, farU := m.Cb[near*m.CStride:][:w], m.Cb[far*m.CStride:][:w]
		nearV, farV := m.Cr[near*m.CStride:][:w], m.Cr[far*m.CStride:][:w]
		luma, dst := m.Y[y*m.YStride:], out.row(y)
		for x := range out.width {
			a := x / 2
			b := min(max(a-1+x%2*2, 0), w-1)
			u := amid(nearU[a], nearU[b], farU[a], farU[b])
			v := amid(nearV[a], nearV[b], farV[a], farV[b])
			p := dst[3*x:][:3]
			p[0], p[1], p[2] = fromYUV(int32(luma[x]), u, v)
		}
	}
	return out
}

// amid returns (9a + 3b + 3c + d)/16 rounded as libwebp does: the mean of a and the rounded-down (a+3b+3c+d)/8.
func amid(a, b, c, d uint8) int32 {
	sum := int32(a) + 3*int32(b) + 3*int32(c) + int32(d) + 8
	return (sum>>3 + int32(a)) >> 1
}

// fromYUV converts a colour of ITU-R BT.601 with 14 fractional bits, libwebp's yuv.h.
func fromYUV(y, u, v int32) (r, g, b uint8) {
	l := y * 19077 >> 8
	return clamp((l + v*26149>>8 - 14234) >> 6),
		clamp((l - u*6419>>8 - v*13320>>8 + 8708) >> 6),
		clamp((l + u*33050>>8 - 17685) >> 6)
}
