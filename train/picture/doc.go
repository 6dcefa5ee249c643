// Package picture turns image and video files into the patches that vision towers read: the arithmetic of
// transformers' Qwen2VLImageProcessor (Qwen2-VL, arXiv:2409.12191 §2.1), Glm4vImageProcessor (GLM-4.1V),
// GotOcr2ImageProcessor (InternVL, arXiv:2404.16821 §3.3), Idefics3ImageProcessor and SmolVLMImageProcessor (Idefics3,
// arXiv:2408.12637 §2.2), PixtralImageProcessor, and Gemma3ImageProcessor (arXiv:2503.19786 §2.1).
//
//	file → RGB pixels, upright → resized to whole blocks or tiles → normalised → patches
//
// Pixels are Pillow's Image.convert("RGB"), turned upright by EXIF as the libraries datasets and transformers do when
// they load a file. Transparency is dropped, not laid on a background, as Pillow does. Everything up to the resized
// pixels is integer arithmetic, and the rest is one rounding per step of float32: results do not depend on threads or
// the machine.
//
// A video is frames, image files of one size, or a GIF animation, in one file of this package (PackFrames, PackGIF).
// Its processors are transformers' Qwen2VLVideoProcessor and Qwen3VLVideoProcessor (VideoSettings). Other video files
// and colour profiles are not read; of a GIF or PNG animation shown as an image, the first image is.
package picture
