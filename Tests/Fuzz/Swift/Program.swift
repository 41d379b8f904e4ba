import Glibc

/// libFuzzer's driver, which the linker takes from the toolchain's library of that name.
@_silgen_name("LLVMFuzzerRunDriver")
private func runDriver(
    _ count: UnsafeMutablePointer<CInt>,
    _ words: UnsafeMutablePointer<UnsafeMutablePointer<UnsafeMutablePointer<CChar>?>>,
    _ body: @convention(c) (UnsafePointer<UInt8>?, Int) -> CInt
) -> CInt

private let target: FuzzTarget = {
    guard let name = getenv("FUZZ_TARGET").map({ String(cString: $0) }), let target = FuzzTarget(rawValue: name) else {
        fatalError("FUZZ_TARGET is none of \(FuzzTarget.allCases.map(\.rawValue).joined(separator: " "))")
    }
    return target
}()

/// The program of scripts/fuzz: feeds the target that the environment names.
@main
enum Program {
    static func main() {
        var count = CommandLine.argc
        var words = CommandLine.unsafeArgv
        exit(
            runDriver(&count, &words) { bytes, count in
                do { try target.read(Array(UnsafeBufferPointer(start: bytes, count: count))) } catch {
                    fatalError("\(error)")
                }
                return 0
            })
    }
}
