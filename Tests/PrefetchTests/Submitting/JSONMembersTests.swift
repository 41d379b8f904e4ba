import Foundation
import TestSupport
import Testing

@testable import Prefetch

@Suite("Members of a line of JSON, without Foundation")
struct JSONMembersTests {
    /// What Foundation makes of the same line; nil if it is no object.
    private func foundation(_ line: String) -> [String: JSONValue]? {
        try? JSONDecoder().decode([String: JSONValue].self, from: Data(line.utf8))
    }

    private func members(_ line: String) -> [String: String]? {
        guard let found = JSONMembers(Array(line.utf8)) else { return nil }
        return Dictionary(
            uniqueKeysWithValues: found.members.map { member in
                (found.name(member), found.string(member) ?? String(decoding: found.bytes[member.range], as: UTF8.self))
            })
    }

    static let lines = [
        #"{}"#, #" { } "#, #"{"url":"http://h/1"}"#,
        #"{"a":1,"b":-0.5e+10,"c":true,"d":null,"e":[1,{"x":[]}],"f":{"g":"h"}}"#,
        #"{"a":"\"\\\/\b\f\n\r\t"}"#, #"{"a":"\u00e9\ud83d\ude00"}"#, #"{"caf\u00e9":"x","cafe\u0301":"y"}"#,
        #"{"a":"é 😀"}"#, #"{"a" : "b" , "c":[ ] }"#, #"{"":""}"#,
    ]

    @Test("They are those that Foundation finds", arguments: lines)
    func same(line: String) throws {
        let found = try #require(JSONMembers(Array(line.utf8)), "\(line)")
        let others = try #require(foundation(line))
        for member in found.members {
            let text = found.string(member) ?? String(decoding: found.bytes[member.range], as: UTF8.self)
            // Of names that are canonically equivalent Foundation has one.
            guard let other = others[found.name(member)], !line.contains("caf") else { continue }
            switch other {
            case .string(let value): #expect(value.utf8.elementsEqual(text.utf8))
            case .null: #expect(text == "null")
            default: #expect(foundation("{\"x\":\(text)}") == ["x": other])
            }
        }
        #expect(found.members.count == others.count || line.contains("caf"))
    }

    @Test(
        "What is odd, or no object, is left to Foundation",
        arguments: [
            "", "[]", "{", "{}x", #"{"a"}"#, #"{"a":}"#, #"{"a":1,}"#, #"{,"a":1}"#, #"{"a":01}"#, #"{"a":1.}"#,
            #"{"a":+1}"#,
            #"{"a":tru}"#, #"{"a":NaN}"#, #"{"a":"\x"}"#, #"{"a":"\u12"}"#,
            "{\"a\":\"\u{1}\"}", #"{'a':1}"#, #"{"a":1,"a":2}"#, #"{"a":[1,]}"#, #"{"a":[1 2]}"#,
            "{\"a\":" + String(repeating: "[", count: 100) + String(repeating: "]", count: 100) + "}",
        ])
    func odd(line: String) { #expect(members(line) == nil) }

    @Test("Half a character is no text", arguments: [#"{"a":"\ud800"}"#, #"{"a":"\udc00\ud800"}"#])
    func halves(line: String) throws {
        let found = try #require(JSONMembers(Array(line.utf8)))
        #expect(found["a"].flatMap { found.string($0) } == nil)
    }

    @Test("A text that was quoted is read back, whatever is in it")
    func quoted() throws {
        var random = SystemRandomNumberGenerator()
        for _ in 0..<300 {
            let scalars = (0..<Int.random(in: 0...20, using: &random)).compactMap { _ in
                UnicodeScalar(UInt32.random(in: 0...0x2FF, using: &random))
            }
            let text = String(String.UnicodeScalarView(scalars))
            let line = Array("{\"x\":".utf8) + JSONMembers.quoted(text.utf8) + Array("}".utf8)
            let found = try #require(JSONMembers(line))
            #expect(found["x"].flatMap { found.string($0) }?.utf8.elementsEqual(text.utf8) == true)
            #expect(foundation(String(decoding: line, as: UTF8.self)) == ["x": .string(text)])
        }
    }
}
