//go:build linux && (amd64 || arm64)

package sandbox

import (
	"errors"
	"io"

	"golang.org/x/sys/unix"
)

// send writes one message with descriptors to a seqpacket socket.
func send(sock int, message []byte, fds ...int) error {
	var oob []byte
	if len(fds) > 0 {
		oob = unix.UnixRights(fds...)
	}
	for {
		err := unix.Sendmsg(sock, message, oob, nil, unix.MSG_NOSIGNAL)
		if !errors.Is(err, unix.EINTR) {
			return err
		}
	}
}

// receive reads one message of at most size bytes with its descriptors. It returns io.EOF if the other end
// is closed.
func receive(sock, size int) (message []byte, fds []int, err error) {
	message = make([]byte, size)
	oob := make([]byte, unix.CmsgSpace(4*64))
	var n, oobn, flags int
	for {
		n, oobn, flags, _, err = unix.Recvmsg(sock, message, oob, unix.MSG_CMSG_CLOEXEC)
		if !errors.Is(err, unix.EINTR) {
			break
		}
	}
	if err != nil {
		return nil, nil, err
	}
	parts, err := unix.ParseSocketControlMessage(oob[:oobn])
	if err != nil {
		return nil, nil, err
	}
	for i := range parts {
		if got, err := unix.ParseUnixRights(&parts[i]); err == nil {
			fds = append(fds, got...)
		}
	}
	switch {
	case flags&(unix.MSG_TRUNC|unix.MSG_CTRUNC) != 0:
		err = errors.New("truncated message")
	case n == 0:
		err = io.EOF
	}
	if err != nil {
		closeAll(fds)
		return nil, nil, err
	}
	return message[:n], fds, nil
}

// memoryFile returns a descriptor of a nameless file that holds data.
func memoryFile(data []byte) (int, error) {
	fd, err := unix.MemfdCreate("program", unix.MFD_CLOEXEC|unix.MFD_ALLOW_SEALING)
	if err != nil {
		return -1, err
	}
	for off := 0; off < len(data); {
		n, err := unix.Pwrite(fd, data[off:], int64(off))
		if err != nil {
			_ = unix.Close(fd)
			return -1, err
		}
		off += n
	}
	return fd, nil
}
