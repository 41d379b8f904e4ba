internal import CImageCodec

package enum CodecLibraries {
    /// For example `libjpeg-turbo 2.1.5, libpng 1.6.39, libdeflate 1.14, zlib 1.2.13`
    package static var versions: String { String(cString: image_codec_libraries()) }
}
