/// One argument of a command: arbitrary bytes. Commands are not assembled as text, so bytes of a URL cannot end one argument and begin
/// another.
package struct RedisArgument: Sendable, Hashable, ExpressibleByStringLiteral, ExpressibleByStringInterpolation,
    ExpressibleByIntegerLiteral
{
    package let bytes: [UInt8]

    package init(_ bytes: [UInt8]) { self.bytes = bytes }

    package init(_ text: some StringProtocol) { bytes = Array(text.utf8) }

    package init(_ number: some BinaryInteger) { bytes = Array(String(number).utf8) }

    package init(stringLiteral value: String) { self.init(value) }

    package init(integerLiteral value: Int) { self.init(value) }
}
