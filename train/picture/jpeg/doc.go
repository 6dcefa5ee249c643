// Package jpeg decodes JPEG files into RGB pixels with the bits of libjpeg-turbo and Pillow, which other trainers
// decode with: the accurate integer inverse DCT, "fancy" (triangle) upsampling of chroma, and 16-bit fixed-point
// colour conversion. Package image/jpeg repeats chroma samples and has another inverse DCT, which changes between
// releases of Go: one seed would not always give one result.
//
// It reads 8-bit baseline, extended and progressive files with Huffman codes: grey, YCbCr, RGB, CMYK and YCCK. It
// refuses arithmetic coding, lossless and hierarchical files, 12 bits, and truncated or corrupt data, where libjpeg
// warns and guesses. It does not smooth the blocks of progressive files that lack their last scans, as libjpeg does.
// Colour profiles and orientation are the caller's concern.
package jpeg
