internal import Glibc
internal import WebImage

/// The images of an archive that WebDataset reads (POSIX tar), as Python's tarfile, img2dataset and this program write it: where they are.
struct ShardArchive {
    struct Member {
        let offset: Int, size: Int
        /// What it is called behind its key.
        let ending: String
    }

    /// By the part of their names before the first dot.
    private(set) var images: [ByteText: Member] = [:]
    let descriptor: Int32

    /// * `descriptor`: of the archive; closed by the caller.
    init(_ descriptor: Int32) {
        self.descriptor = descriptor
        var status = stat()
        guard fstat(descriptor, &status) == 0 else { return }
        let end = Int(status.st_size)
        var place = 0
        while place + TarHeader.blockSize <= end {
            var header = [UInt8](repeating: 0, count: TarHeader.blockSize)
            guard pread(descriptor, &header, header.count, off_t(place)) == header.count, header[0] != 0,
                let size = Self.octal(header[124..<136]), size >= 0
            else { return }
            let offset = place + TarHeader.blockSize
            // An archive that was cut: the rest of this one is not there.
            guard size <= end - offset else { return }
            if header[156] == UInt8(ascii: "0") || header[156] == 0 {
                add(header[..<100].prefix { $0 != 0 }, offset, size)
            }
            place = offset + size + TarHeader.padding(size).count
        }
    }

    private mutating func add(_ name: ArraySlice<UInt8>, _ offset: Int, _ size: Int) {
        guard let dot = name.firstIndex(of: UInt8(ascii: ".")) else { return }
        let ending = String(decoding: name[(dot + 1)...], as: UTF8.self)
        guard ending != "json", ending != "txt" else { return }
        let key = ByteText(String(decoding: name[..<dot], as: UTF8.self))
        images[key] = Member(offset: offset, size: size, ending: ending)
    }

    /// Nil of what is no number.
    private static func octal(_ field: ArraySlice<UInt8>) -> Int? {
        let digits = field.drop { $0 == 0x20 }.prefix { $0 != 0 && $0 != 0x20 }
        guard digits.count <= 12 else { return nil }
        var number = 0
        for digit in digits {
            guard (UInt8(ascii: "0")...UInt8(ascii: "7")).contains(digit) else { return nil }
            number = number << 3 | Int(digit & 7)
        }
        return number
    }

    func bytes(_ member: Member) -> [UInt8]? {
        var bytes = [UInt8](repeating: 0, count: member.size)
        var count = 0
        while count < bytes.count {
            let got = bytes.withUnsafeMutableBytes {
                pread(descriptor, $0.baseAddress! + count, $0.count - count, off_t(member.offset + count))
            }
            if got < 0, errno == EINTR { continue }
            guard got > 0 else { return nil }
            count += got
        }
        return bytes
    }
}
