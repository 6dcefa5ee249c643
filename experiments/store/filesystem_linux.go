package store

import "golang.org/x/sys/unix"

// Filesystem describes the file system that dir is on.
func Filesystem(dir string) (f FilesystemInfo, err error) {
	var s unix.Statfs_t
	if err := unix.Statfs(dir, &s); err != nil {
		return f, &Error{Op: "look at file system", Path: dir, Err: err}
	}
	f.Free = int64(s.Bavail) * int64(s.Bsize)
	f.Name = networkNames[uint32(s.Type)]
	if f.Network = f.Name != ""; !f.Network {
		f.Name = localNames[uint32(s.Type)]
	}
	return f, nil
}

// localNames names common local file systems, for display only.
var localNames = map[uint32]string{
	0x0000ef53: "ext4", // and its ancestors
	0x58465342: "XFS",
	0x9123683e: "Btrfs",
	0xf2f52010: "F2FS",
	0x2fc12fc1: "ZFS",
	0x01021994: "tmpfs",
	0x794c7630: "overlay",
}

// networkFS returns the name of the network file system that dir is on, "" for a local
// one. The numbers are from statfs(2) and linux/magic.h. FUSE counts as a network: its
// backing is unknown.
func networkFS(dir string) (string, error) {
	var s unix.Statfs_t
	if err := unix.Statfs(dir, &s); err != nil {
		return "", err
	}
	return networkNames[uint32(s.Type)], nil
}

var networkNames = map[uint32]string{
	0x00006969: "NFS",
	0x0000517b: "SMB",
	0xff534d42: "CIFS",
	0xfe534d42: "SMB2",
	0x0bd00bd0: "Lustre",
	0x47504653: "GPFS",
	0x65735546: "FUSE",
	0x01021997: "9p",
	0x00c36400: "Ceph",
	0x5346414f: "AFS",
	0x6b414653: "AFS", // the kernel's own
	0x73757245: "Coda",
	0x20030528: "OrangeFS",
	0x7461636f: "OCFS2",
	0x01161970: "GFS2",
	0x19830326: "BeeGFS",
}

// mountedReadOnly reports whether the file system that dir is on takes no writes, whoever asks.
func mountedReadOnly(dir string) bool {
	var s unix.Statfs_t
	return unix.Statfs(dir, &s) == nil && s.Flags&unix.ST_RDONLY != 0
}
