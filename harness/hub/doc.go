// Package hub gets models and data sets from a hub that speaks Hugging Face's protocol, and
// finds those already on this machine.
//
// A Ref names a repository at a revision: hub:ORG/NAME@REV. A Cache finds it in the folder
// that Python's huggingface_hub shares, and never uses the network. A Client fills that
// folder:
//
//	models--ORG--NAME/            datasets--ORG--NAME for a data set
//	  refs/REV                    the commit that REV meant when it was fetched last
//	  blobs/DIGEST                contents: sha256 of large files, git's sha1 of the others
//	  blobs/DIGEST.incomplete     a download to continue
//	  snapshots/COMMIT/PATH       link to ../../blobs/DIGEST
//	  .no_exist/COMMIT/PATH       empty: the commit has no such file
//	.locks/models--ORG--NAME/DIGEST.lock
//
// A blob gets its name only after its size and digest were checked, a snapshot its link
// only after that, and a revision its commit last: after a crash, only complete files can be
// found.
//
// It does not upload, resolve partial commit hashes offline, or check again what another
// program put into the cache; a run digests the weights and data that it reads.
package hub
