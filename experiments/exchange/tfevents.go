package exchange

import (
	"bufio"
	"errors"
	"io"
	"math"
	"strconv"
	"time"
)

// Fields of the messages of TensorBoard.
const (
	eventWallTime, eventStep, eventVersion, eventSummary = 1, 2, 3, 5
	summaryValue                                         = 1
	valueTag, valueSimple, valueTensor, valueMetadata    = 1, 2, 8, 9
	metadataDescription                                  = 3
	tensorType, tensorContent, tensorFloats, tensorReals = 1, 4, 5, 6
	typeFloat, typeDouble                                = 1, 2
)

// eventsVersion is what the first event of a file says.
const eventsVersion = "brain.Event:2"

// appendEvent appends the record of an event: the version of the file if tag is
// empty, else a scalar.
func appendEvent(dst []byte, wall time.Time, step int64, tag string, value float64) []byte {
	return appendDescribed(dst, wall, step, tag, value, "")
}

// appendDescribed is appendEvent with a description of the scalar in Markdown, which
// TensorBoard takes from the first event of a tag.
func appendDescribed(dst []byte, wall time.Time, step int64, tag string, value float64, about string) []byte {
	e := appendDouble(nil, eventWallTime, float64(wall.UnixMilli())/1000)
	if tag == "" {
		return appendRecord(dst, appendBytes(e, eventVersion, eventsVersion))
	}
	v := appendBytes(nil, valueTag, tag)
	v = append(v, byte(valueSimple<<3|wire32))
	bits := math.Float32bits(float32(value))
	v = append(v, byte(bits), byte(bits>>8), byte(bits>>16), byte(bits>>24))
	if about != "" {
		v = appendBytes(v, valueMetadata, appendBytes(nil, metadataDescription, about))
	}
	e = appendVarint(e, eventStep, uint64(step))
	return appendRecord(dst, appendBytes(e, eventSummary, appendBytes(nil, summaryValue, v)))
}

// readEvents reads the scalars of an event file. whole is false if the last record
// ends early; what came before it counts.
func (p *points) readEvents(name string, r io.Reader) (whole bool, err error) {
	in := bufio.NewReaderSize(r, 1<<20)
	for n := 1; ; n++ {
		data, err := readRecord(in)
		switch {
		case err == io.EOF && n > 1:
			return true, nil
		case err == io.ErrUnexpectedEOF && n > 1:
			return false, nil
		case err == nil:
			err = p.event(data)
		}
		if errors.Is(err, errRecord) || errors.Is(err, errMessage) || err == io.EOF || err == io.ErrUnexpectedEOF {
			return false, &FormatError{Path: name, Msg: "record " + strconv.Itoa(n) + " is no TensorBoard event or is damaged",
				Help: "event files are named events.out.tfevents.*; copy the file again"}
		}
		if err != nil {
			return false, err
		}
	}
}

// event takes the scalars of an event.
func (p *points) event(data []byte) error {
	var step int64
	var wall float64
	var summaries [][]byte
	err := fields(data, func(f field) error {
		switch {
		case f.id == eventWallTime && f.wire == wire64:
			wall = math.Float64frombits(f.number)
		case f.id == eventStep && f.wire == wireVarint:
			step = int64(f.number)
		case f.id == eventSummary && f.wire == wireBytes:
			summaries = append(summaries, f.bytes)
		}
		return nil
	})
	if err != nil {
		return err
	}
	for _, s := range summaries {
		err := fields(s, func(f field) error {
			if f.id != summaryValue || f.wire != wireBytes {
				return nil
			}
			return p.scalar(f.bytes, step)
		})
		if err != nil {
			return err
		}
	}
	// A file begins with an event that has a time and nothing else.
	if len(summaries) > 0 && wall > 0 && wall < 1e11 {
		p.at(time.UnixMilli(int64(wall * 1000)).UTC())
	}
	return nil
}

// scalar takes a value of a summary, unless it is no scalar: an image, a text.
func (p *points) scalar(b []byte, step int64) error {
	tag, value, ok := "", 0.0, false
	err := fields(b, func(f field) (err error) {
		switch {
		case f.id == valueTag && f.wire == wireBytes:
			tag = string(f.bytes)
		case f.id == valueSimple && f.wire == wire32:
			value, ok = float64(math.Float32frombits(uint32(f.number))), true
		case f.id == valueTensor && f.wire == wireBytes:
			value, ok, err = tensorScalar(f.bytes)
		}
		return err
	})
	if err == nil && ok && tag != "" {
		p.add(tag, step, value)
	}
	return err
}

// tensorScalar is the value of a tensor of one float or double, which newer writers
// use for scalars.
func tensorScalar(b []byte) (value float64, ok bool, err error) {
	kind, content, list := uint64(0), []byte(nil), []byte(nil)
	err = fields(b, func(f field) error {
		switch {
		case f.id == tensorType:
			kind = f.number
		case f.id == tensorContent:
			content = f.bytes
		case (f.id == tensorFloats || f.id == tensorReals) && f.wire == wireBytes: // packed
			list = f.bytes
		case f.id == tensorFloats && f.wire == wire32:
			list = []byte{byte(f.number), byte(f.number >> 8), byte(f.number >> 16), byte(f.number >> 24)}
		}
		return nil
	})
	if content == nil {
		content = list
	}
	switch {
	case kind == typeFloat && len(content) == 4:
		bits := uint32(content[0]) | uint32(content[1])<<8 | uint32(content[2])<<16 | uint32(content[3])<<24
		return float64(math.Float32frombits(bits)), true, err
	case kind == typeDouble && len(content) == 8:
		bits := uint64(0)
		for i, c := range content {
			bits |= uint64(c) << (8 * i)
		}
		return math.Float64frombits(bits), true, err
	}
	return 0, false, err
}
