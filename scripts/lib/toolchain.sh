# Sourced: the Swift that scripts/run --toolchain has downloaded comes before any other.
toolchain=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)/.build/toolchain
if [ -x "$toolchain/usr/bin/swift" ]; then PATH=$toolchain/usr/bin:$PATH; fi
