import CLinux
import Glibc

/// A file without a name in the folder for temporary ones.
func openUnnamedFile() -> Int32 { clinux_open("/tmp", clinux_tmpfile_flags(), 0o600) }
